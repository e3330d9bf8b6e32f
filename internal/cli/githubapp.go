package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/liftlock/liftlock/internal/forge/github"
)

// appFlags are the flags of init that describe a GitHub App.
type appFlags struct {
	print             bool
	name, forge       string
	externalURL       string
	public            bool
	appOnly, fileOnly []string // the flags that go with --github-app alone, and those that don't
}

func (a *appFlags) addFlags(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) { a.fileOnly = append(a.fileOnly, f.Name) })
	c.Flags().BoolVar(&a.print, "github-app", false, "print the manifest of a GitHub App for Liftlock, and nothing else")
	c.Flags().StringVar(&a.externalURL, "external-url", "", "with --github-app: externalURL of the server's file, or "+
		"webhooks.externalURL where that is set")
	c.Flags().StringVar(&a.forge, "forge", "hub", "with --github-app: the forge's name in the server's file")
	c.Flags().StringVar(&a.name, "app-name", "Liftlock", "with --github-app: the App's name, which must be free on the whole of GitHub")
	c.Flags().BoolVar(&a.public, "public", false, "with --github-app: let other organisations install the App")
	a.appOnly = []string{"external-url", "forge", "app-name", "public"}
}

// checkFlags refuses flags that say nothing beside the others.
func (a *appFlags) checkFlags(c *cobra.Command) error {
	refused, why := a.appOnly, "it goes with --github-app"
	if a.print {
		refused, why = a.fileOnly, "--github-app prints a manifest and looks at no checkout"
	}
	for _, name := range refused {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s says nothing here: %s", name, why)
		}
	}
	return nil
}

// printManifest prints what GitHub makes the App of.
func (a *appFlags) printManifest(c *cobra.Command) error {
	if a.externalURL == "" {
		return errors.New("say with --external-url where GitHub reaches the server, such as https://liftlock.example.com")
	}
	u, err := url.Parse(a.externalURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("--external-url: %q is not an address such as https://liftlock.example.com", a.externalURL)
	}
	enc := json.NewEncoder(c.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(github.NewManifest(a.name, a.externalURL, a.forge, "", a.public))
}
