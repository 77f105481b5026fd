int mini_support();
int mini_ir() { return mini_support(); }
