/* Kernels of $out_name, chosen by what is known of their arguments.
   Interface of Triton's tools/link.py, which is under the MIT licence. */
#include "$out_name.h"

$includes
$definitions
typedef TT_ResultTy (*kernel_func_t)($parameters);
kernel_func_t ${out_name}_kernels[] = {
$table};

int ${out_name}_get_num_algos(void) {
    return (int)(sizeof ${out_name}_kernels / sizeof ${out_name}_kernels[0]);
}

TT_ResultTy $out_name($parameters, int algo_id) {
    if (algo_id < 0 || algo_id >= ${out_name}_get_num_algos())
        return TT_ERROR_INVALID_VALUE;
    return ${out_name}_kernels[algo_id]($names);
}

TT_ResultTy ${out_name}_default($parameters) {
    return $out_name($names, 0);
}

void load_$out_name(void) {
$loads}

void unload_$out_name(void) {
$unloads}
