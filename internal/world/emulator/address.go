package emulator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
)

// FreeAddress chooses among these ports. They are below those that systems give to outgoing
// connections (32768 and up on Linux, 49152 and up elsewhere). So no client takes one while its
// server is being started again.
const (
	firstFreePort = 15000
	lastFreePort  = 31999
)

// portsTried counts the ports that this process has tried, so that none is returned twice.
var portsTried atomic.Uint32

// FreeAddress returns an address of 127.0.0.1 for a server that starts later, and perhaps
// more than once: hooks and replicas must know it before. Processes begin at ports of
// their own; that two choose the same isn't ruled out. An error says that no port is free.
func FreeAddress() (string, error) {
	const ports = lastFreePort - firstFreePort + 1
	var errs []error
	for range ports {
		port := firstFreePort + (os.Getpid()*97+int(portsTried.Add(1)))%ports
		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("find a free port from %d to %d: %w", firstFreePort, lastFreePort, errors.Join(errs[0], errs[len(errs)-1]))
}
