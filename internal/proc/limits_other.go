//go:build !linux

package proc

import (
	"errors"
	"syscall"
)

func (l Limits) supported() error {
	if l != (Limits{}) {
		return errors.New("resource limits are only supported on Linux")
	}
	return nil
}

func (l Limits) apply(int) error { return nil }

func dieWithParent(*syscall.SysProcAttr) {}
