package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/wording"
)

// These are set with -ldflags -X by `make build` and by the image's build. The date is the
// commit's and not the build's, so that a build made again is the same, byte for byte.
var version, commit, date string

// build is what a program was built from. Unknown parts are empty.
type build struct {
	Version  string `json:"version"`            // a tag, a commit, or dev
	Commit   string `json:"commit,omitempty"`   // the whole hash
	Date     string `json:"date,omitempty"`     // of the commit, in UTC, as RFC 3339 has it
	Modified bool   `json:"modified,omitempty"` // the commit isn't all: files were edited
	Go       string `json:"go"`                 // the compiler's version
	Platform string `json:"platform"`           // as linux/amd64
}

// currentBuild describes the running program: by what its build was given, and else by what
// Go itself notes of the module and of the checkout.
func currentBuild() build {
	out := build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if out.Commit == "" {
		out.Commit, out.Date, out.Modified = settings["vcs.revision"], settings["vcs.time"], settings["vcs.modified"] == "true"
	}
	if out.Version == "" && info.Main.Version != "(devel)" && out.Commit == "" {
		out.Version = info.Main.Version
	}
	out.Version = cmp.Or(out.Version, wording.Short(out.Commit), "dev")
	return out
}

// Version is the build's version: what a release build was given, else the module's version
// or commit, else "dev".
func Version() string { return currentBuild().Version }

func versionCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Long:  "Says which version this program is, of which commit, when that was made, and by which Go.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printBuild(cmd.OutOrStdout(), currentBuild(), output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", formatTable, "table, json or yaml")
	completeFormats(c, formatTable, formatJSON, formatYAML)
	return c
}

func printBuild(w io.Writer, b build, output string) error {
	switch output {
	case formatJSON:
		return printJSON(w, b)
	case formatYAML:
		return printYAML(w, b)
	case formatTable, formatWide:
	default:
		return fmt.Errorf("-o is table, json or yaml, not %q", output)
	}
	edited := ""
	if b.Modified {
		edited = ", with edits"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "liftlock\t%s\n", b.Version)
	fmt.Fprintf(t, "commit\t%s%s\n", cmp.Or(b.Commit, "not known"), edited)
	fmt.Fprintf(t, "date\t%s\n", cmp.Or(b.Date, "not known"))
	fmt.Fprintf(t, "go\t%s %s\n", b.Go, b.Platform)
	return t.Flush()
}
