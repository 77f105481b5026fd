/* $title
   Interface of Triton's tools/compile.py, which is under the MIT licence.
   $docstring */
$define
#include <$include>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "$header"

$module ${name}_mod = NULL;
$function ${name}_func = NULL;
unsigned char ${name}_$binary[$size] = { $data };
$helpers
static $result prepare(void) {
    $result code = $load(&${name}_mod, ${name}_$binary);
    if (code == $success)
        code = $find(&${name}_func, ${name}_mod, "$symbol");
$allow    if (code != $success) {
        if (${name}_mod != NULL)
            (void)$unload(${name}_mod);
        ${name}_mod = NULL;
        ${name}_func = NULL;
    }
    return code;
}

static void check($result code) {
    const char *text = NULL;
    if (code == $success)
        return;
    (void)$describe(code, &text);
    fprintf(stderr, "Triton Error [$vendor]: $name: %s\n", text ? text : "unknown");
    exit((int)code);
}

void load_$name(void) {
    if (${name}_func == NULL)
        check(prepare());
}

void unload_$name(void) {
    if (${name}_mod != NULL)
        check($unload(${name}_mod));
    ${name}_mod = NULL;
    ${name}_func = NULL;
}

$result $name($parameters) {
    if (${name}_func == NULL) {
        $result code = prepare();
        if (code != $success)
            return code;
    }
    unsigned int gX = $grid_x;
    unsigned int gY = $grid_y;
    unsigned int gZ = $grid_z;
$locals    void *args[] = { $pointers };
    if (gX == 0 || gY == 0 || gZ == 0)
        return $invalid;
    return $launch(${name}_func, gX, gY, gZ, $warps * $warp_size, 1, 1, $shared, stream, args, NULL);
}
