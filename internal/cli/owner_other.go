//go:build !unix

package cli

import (
	"io/fs"
	"os"
)

// keepOwner does nothing where files have no owner in the sense of Unix.
func keepOwner(*os.File, fs.FileInfo) {}
