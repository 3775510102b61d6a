// Sorts with a comparison that copies, then sums up. FIX=1 compares in place.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>
__attribute__((noinline)) static bool copies(std::string a, std::string b) { return a < b; }
__attribute__((noinline)) static bool in_place(const std::string &a, const std::string &b) { return a < b; }
__attribute__((noinline)) static void sort_names(std::vector<std::string> &names) {
    if (getenv("FIX")) std::sort(names.begin(), names.end(), in_place);
    else std::sort(names.begin(), names.end(), copies);
}
__attribute__((noinline)) static unsigned long sum_up(const std::vector<std::string> &names) {
    unsigned long sum = 0;
    for (int i = 0; i < 4; i++) for (auto &name : names) for (char c : name) sum = sum * 31 + c;
    return sum;
}
int main() {
    std::vector<std::string> names;
    for (int i = 0; i < 300000; i++) names.push_back("a name that is longer than a small string " + std::to_string(i * 7919L % 299993));
    sort_names(names);
    return sum_up(names) == 1;
}
