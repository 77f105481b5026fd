#include <cstdio>
#include <cstdlib>

// Reads as far behind its four numbers as it is told to.
int main(int argc, char **argv) {
  int *numbers = static_cast<int *>(std::calloc(4, sizeof(int)));
  int index = argc > 1 ? std::atoi(argv[1]) : 0;
  std::printf("number %d is %d\n", index, numbers[index]);
  std::free(numbers);
  return 0;
}
