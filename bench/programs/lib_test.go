package lib

import (
	"os"
	"testing"
	"time"
)

func TestQuick(t *testing.T) {}

func TestWithRetries(t *testing.T) {
	if os.Getenv("FIX") == "" {
		waitForBroker()
	}
}

//go:noinline
func waitForBroker() { time.Sleep(1300 * time.Millisecond) }
