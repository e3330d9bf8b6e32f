// Command liftlock moves releases from environment to environment through pull
// requests.
package main

import (
	"os"
	_ "time/tzdata" // windows and freezes name zones, also where the system has none

	"github.com/liftlock/liftlock/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
