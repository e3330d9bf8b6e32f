package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/liftlock/liftlock/"

// rooms says which of our own packages each room may import, directly, outside of
// its tests. "*" is everything but the forge drivers; docs/architecture.md tells why.
var rooms = map[string][]string{
	"cmd/liftlock":                    {"internal/cli"},
	"webhooks":                        {},
	"policies":                        {},
	"internal/cache":                  {},
	"internal/strictyaml":             {},
	"internal/pipeline/fieldpath":     {},
	"internal/pipeline/placeholder":   {"internal/pipeline/fieldpath"},
	"internal/pipeline":               {"policies", "internal/strictyaml", "internal/pipeline/fieldpath", "internal/pipeline/placeholder"},
	"internal/config":                 {"internal/strictyaml"},
	"internal/proc":                   {},
	"internal/git":                    {"internal/proc"},
	"internal/appset":                 {"internal/pipeline", "internal/strictyaml"},
	"internal/manifest/deps":          {},
	"internal/fieldedit":              {"internal/pipeline", "internal/pipeline/fieldpath", "internal/pipeline/placeholder"},
	"internal/manifest/textdiff":      {},
	"internal/manifest/render":        {"internal/manifest/textdiff"},
	"internal/appset/isolation":       {"internal/appset", "internal/manifest/deps", "internal/appset/evaluate", "internal/manifest/render"},
	"internal/promotion/verification": {},
	"internal/argocd":                 {"internal/promotion/verification"},
	"internal/promotion":              {"policies", "internal/pipeline", "internal/promotion/verification"},
	"internal/forge":                  {},
	"internal/forge/transport":        {"internal/forge"},
	"internal/forge/forgetest":        {"internal/forge", "webhooks"},
	"internal/forge/github":           {"internal/forge", "internal/forge/transport"},
	"internal/forge/gitea":            {"internal/forge", "internal/forge/transport"},
	"internal/promotion/command":      {"internal/promotion"},
	"internal/controller/prtext":      {"internal/promotion", "policies", "internal/appset/impact"},
	"internal/store":                  {},
	"internal/sandbox":                {"internal/proc"},
	"internal/appset/evaluate":        {"internal/sandbox", "internal/appset", "internal/manifest/deps", "internal/pipeline"},
	"internal/appset/impact":          {"internal/appset/evaluate", "internal/appset", "internal/pipeline"},
	"internal/appset/history":         {"internal/appset", "internal/git", "internal/fieldedit", "internal/pipeline", "internal/promotion", "internal/strictyaml"},
	"internal/controller/plan":        {"internal/appset/history", "internal/promotion", "internal/promotion/verification", "internal/fieldedit", "internal/appset/isolation", "internal/appset/evaluate", "internal/appset", "internal/git", "internal/pipeline", "internal/manifest/deps", "internal/manifest/render", "internal/manifest/textdiff"},
	"internal/cli/checkout":           {"internal/argocd", "internal/appset/impact", "internal/controller/plan", "internal/appset/history", "internal/appset/evaluate", "internal/appset", "internal/git", "internal/pipeline"},
	"internal/controller":             {"*"},
	"internal/controller/facts":       {"*"},
	"internal/controller/act":         {"*"},
	"internal/console":                {"internal/console/api", "internal/store", "internal/promotion", "internal/promotion/command"},
	"internal/console/api":            {},
	"internal/console/client":         {"internal/console/api"},
	"internal/emulator":               {"internal/proc"},
	"internal/emulator/story":         {"*"},
	"internal/server":                 {"*", "internal/forge/github", "internal/forge/gitea"},
	"internal/cli":                    {"*"},
}

var drivers = []string{"internal/forge/github", "internal/forge/gitea"}

// owners says which packages alone may import a library: replacing it must touch
// one folder.
var owners = map[string][]string{
	"github.com/argoproj/":             {"internal/appset"},
	"github.com/google/go-github/":     {"internal/forge/github", "webhooks"},
	"code.gitea.io/sdk/":               {"internal/forge/gitea", "webhooks"},
	"github.com/xanzy/go-gitlab":       {"internal/forge/gitlab", "webhooks"},
	"database/sql":                     {"internal/store"},
	"modernc.org/sqlite":               {"internal/store"},
	"github.com/jackc/pgx/":            {"internal/store"},
	"os/exec":                          {"internal/proc", "internal/emulator", "internal/forge/forgetest"}, // the last two are never in serve
	"k8s.io/client-go/":                {"internal/argocd", "internal/appset"},
	"sigs.k8s.io/controller-runtime":   {"internal/appset"},
	"sigs.k8s.io/kustomize/":           {"internal/manifest/render"},
	"github.com/hashicorp/golang-lru/": {"internal/cache"},
	"helm.sh/helm/":                    {"internal/manifest/render"},
}

type listed struct {
	ImportPath string
	Imports    []string
}

// TestRooms holds the house's rules over direct imports.
func TestRooms(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	seen := 0
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		room := strings.TrimPrefix(p.ImportPath, module)
		if len(p.Imports) == 0 {
			continue // only tests
		}
		seen++
		may, known := rooms[room]
		if !known {
			t.Errorf("%s is no room of the house: add it here and to docs/architecture.md, or move it", room)
			continue
		}
		for _, imp := range p.Imports {
			if own, ours := strings.CutPrefix(imp, module); ours {
				if !slices.Contains(may, own) && (!slices.Contains(may, "*") || slices.Contains(drivers, own)) {
					t.Errorf("%s imports %s; it may import %q", room, own, may)
				}
				continue
			}
			for lib, rooms := range owners {
				if strings.HasPrefix(imp, lib) && !slices.Contains(rooms, room) {
					t.Errorf("%s imports %s; only %q may", room, imp, rooms)
				}
			}
		}
	}
	if seen < len(rooms)/2 {
		t.Fatalf("only %d packages were listed", seen)
	}
}
