// Goroutines that share a mutex; one holds it while it waits. FIX=1 waits outside of it.
package main

import (
	"os"
	"sync"
	"time"
)

var (
	mutex sync.Mutex
	total int
)

//go:noinline
func callBank() { time.Sleep(150 * time.Millisecond) }

//go:noinline
func price(number int) {
	end := time.Now().Add(20 * time.Millisecond)
	for time.Now().Before(end) {
		total += number
	}
}

func main() {
	var group sync.WaitGroup
	for number := 0; number < 8; number++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if os.Getenv("FIX") == "" {
				mutex.Lock()
				callBank()
				mutex.Unlock()
			}
			price(number)
		}()
	}
	group.Wait()
}
