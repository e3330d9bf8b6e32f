package emulator_test

import (
	"net"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestFreeAddress has no address given twice, nor one that somebody listens on.
func TestFreeAddress(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address, err := emulator.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
}
