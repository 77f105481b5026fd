int mini_support() { return 1; }
