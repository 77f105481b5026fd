const char *mini_amd_architecture(void) { return "gfx942"; }
