/* Kernels of $out_name, chosen by what is known of their arguments.
   Interface of Triton's tools/link.py, which is under the MIT licence. */
#ifndef TT_LINK_$out_name
#define TT_LINK_$out_name
$define
#include <$include>
#include <stdint.h>

#ifndef TT_LINK_INCLUDES
#define TT_LINK_INCLUDES
typedef $stream TT_StreamTy;
typedef $result TT_ResultTy;
#define TT_ERROR_INVALID_VALUE $invalid
#endif

#ifdef __cplusplus
extern "C" {
#endif

$algorithms
int ${out_name}_get_num_algos(void);

TT_ResultTy ${out_name}_default($parameters);
TT_ResultTy $out_name($parameters, int algo_id);
void load_$out_name(void);
void unload_$out_name(void);

#ifdef __cplusplus
}
#endif

#endif
