"""Read-only observers: frozen facts about the machine, tools, checkouts, LLVM trees and Pythons."""
