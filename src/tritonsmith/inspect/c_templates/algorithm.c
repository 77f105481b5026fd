TT_ResultTy $algorithm($parameters) {
$choices    return TT_ERROR_INVALID_VALUE;
}

void load_$algorithm(void) {
$loads}

void unload_$algorithm(void) {
$unloads}
