//go:build !linux

package proc

import (
	"errors"
	"syscall"
)

func (l Limits) checkSupported() error {
	if l != (Limits{}) {
		return errors.New("resource limits are only supported on Linux")
	}
	return nil
}

func (l Limits) applyTo(int) error { return nil }

func dieWithParent(*syscall.SysProcAttr) {}
