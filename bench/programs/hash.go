// Hashes with too many rounds, then sorts. FIX=1 uses few rounds.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
)

//go:noinline
func stretchKey(rounds int) [32]byte {
	sum := sha256.Sum256([]byte("key"))
	for i := 0; i < rounds; i++ {
		sum = sha256.Sum256(sum[:])
	}
	return sum
}

//go:noinline
func sortRows(count int) int {
	rows := make([]int, count)
	for i := range rows {
		rows[i] = i * 7919 % count
	}
	sort.Ints(rows)
	return rows[0]
}

func main() {
	rounds := 12_000_000
	if os.Getenv("FIX") != "" {
		rounds = 1
	}
	fmt.Println(stretchKey(rounds), sortRows(3_000_000))
}
