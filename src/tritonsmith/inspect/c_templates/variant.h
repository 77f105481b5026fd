/* $title
   Interface of Triton's tools/compile.py, which is under the MIT licence. */
#ifndef TT_$name
#define TT_$name
$define
#include <$include>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// tt-linker-backend: $backend

void unload_$name(void);
void load_$name(void);
// tt-linker: $name:$full_signature:$algo
$result $name($parameters);

#ifdef __cplusplus
}
#endif

#endif
