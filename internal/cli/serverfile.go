package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/liftlock/liftlock/internal/server/config"
)

// loadServerFile reads the server's file. Where there is none it says how another is named.
func loadServerFile(path string) (*config.Config, error) {
	c, err := config.Load(path, os.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no server's file %s; name it with --config, or write one as docs/server.md says", path)
	}
	return c, err
}
