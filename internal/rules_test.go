package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/liftlock/liftlock/"

// floors are the rooms from the ground up: none imports one above it, so there is no
// circle between them. docs/architecture.md tells what lives where.
var floors = []string{
	"wording", "cache", "policies", "discover", "provenance", "webhooks", "proc", "pipeline", "manifest", "git", "store", "notify", "forge", "fieldedit", "promotion",
	"argocd", "appset", "console", "controller", "world", "server", "cli", "e2e", "cmd", "deploy",
}

// maxRooms bounds the folders directly in internal/: past it, nobody finds anything.
const maxRooms = 22

// anybody is what every room above it may import.
var anybody = []string{"internal/cache", "internal/cache/lock", "internal/wording"}

// rooms says which of our own packages each package may import besides those,
// directly, outside of its tests.
var rooms = map[string][]string{
	"policies":                                            {},
	"webhooks":                                            {},
	"internal/cache":                                      {},
	"internal/cache/lock":                                 {},
	"internal/wording":                                    {},
	"internal/discover":                                   {},
	"internal/discover/signature":                         {},
	"internal/provenance":                                 {"internal/discover/signature"},
	"internal/proc":                                       {},
	"internal/proc/sandbox":                               {"internal/proc"},
	"internal/pipeline":                                   {"internal/discover", "internal/discover/signature", "internal/pipeline/event", "internal/pipeline/placeholder", "internal/pipeline/strictyaml", "policies"},
	"internal/pipeline/fieldpath":                         {},
	"internal/pipeline/event":                             {},
	"internal/pipeline/placeholder":                       {"internal/pipeline/fieldpath"},
	"internal/pipeline/strictyaml":                        {},
	"internal/git":                                        {"internal/git/smarthttp", "internal/git/sshsig", "internal/manifest/textdiff", "internal/proc"},
	"internal/git/smarthttp":                              {},
	"internal/git/sshsig":                                 {},
	"internal/store":                                      {"internal/pipeline/event"},
	"internal/store/record":                               {"internal/store"},
	"internal/notify":                                     {"internal/pipeline/event", "internal/store", "internal/store/record"},
	"internal/forge":                                      {},
	"internal/forge/gitea":                                {"internal/forge", "internal/forge/rest"},
	"internal/forge/github":                               {"internal/forge", "internal/forge/rest"},
	"internal/forge/gitlab":                               {"internal/forge", "internal/forge/rest"},
	"internal/forge/rest":                                 {"internal/forge"},
	"internal/fieldedit":                                  {"internal/pipeline", "internal/pipeline/fieldpath", "internal/pipeline/placeholder", "internal/pipeline/strictyaml"},
	"internal/manifest/deps":                              {},
	"internal/manifest/render":                            {"internal/manifest/textdiff"},
	"internal/manifest/textdiff":                          {},
	"internal/promotion":                                  {"internal/pipeline", "internal/promotion/cause", "internal/promotion/command", "internal/promotion/verification", "policies"},
	"internal/promotion/backtest":                         {"internal/pipeline", "internal/promotion", "internal/promotion/cause", "internal/promotion/verification", "policies"},
	"internal/promotion/cause":                            {},
	"internal/promotion/command":                          {"internal/pipeline/strictyaml"},
	"internal/promotion/stored":                           {"internal/fieldedit", "internal/forge", "internal/promotion", "internal/store/record"},
	"internal/promotion/verification":                     {},
	"internal/argocd":                                     {"internal/argocd/api", "internal/promotion/verification"},
	"internal/argocd/api":                                 {},
	"internal/appset":                                     {"internal/pipeline", "internal/pipeline/strictyaml"},
	"internal/appset/evaluate":                            {"internal/appset", "internal/fieldedit", "internal/manifest/deps", "internal/manifest/render", "internal/pipeline", "internal/proc/sandbox"},
	"internal/appset/history":                             {"internal/appset", "internal/fieldedit", "internal/git", "internal/manifest/deps", "internal/pipeline", "internal/pipeline/strictyaml", "internal/promotion"},
	"internal/appset/impact":                              {"internal/appset", "internal/appset/evaluate", "internal/pipeline"},
	"internal/appset/isolation":                           {"internal/appset", "internal/appset/evaluate", "internal/fieldedit", "internal/manifest/deps", "internal/manifest/render", "internal/pipeline/fieldpath"},
	"internal/console":                                    {"internal/console/api", "internal/console/graph", "internal/console/login", "internal/fieldedit", "internal/pipeline/event", "internal/pipeline/strictyaml", "internal/promotion", "internal/promotion/cause", "internal/promotion/command", "internal/promotion/stored", "internal/promotion/verification", "internal/store", "internal/store/record", "policies"},
	"internal/console/api":                                {"internal/pipeline/event", "internal/promotion/cause"},
	"internal/console/client":                             {"internal/console/api", "internal/pipeline/strictyaml", "internal/promotion/command"},
	"internal/console/graph":                              {},
	"internal/console/login":                              {},
	"internal/controller":                                 {"internal/appset", "internal/appset/history", "internal/controller/act", "internal/controller/facts", "internal/controller/facts/branch", "internal/controller/facts/discovery", "internal/controller/facts/effects", "internal/controller/facts/people", "internal/controller/onboard", "internal/controller/prtext", "internal/controller/wake", "internal/forge", "internal/git", "internal/pipeline", "internal/pipeline/event", "internal/promotion", "internal/promotion/cause", "internal/promotion/command", "internal/promotion/stored", "internal/promotion/verification", "internal/store", "internal/store/record", "policies", "webhooks"},
	"internal/controller/onboard":                         {"internal/appset"},
	"internal/controller/act":                             {"internal/appset", "internal/appset/history", "internal/controller/facts", "internal/controller/facts/branch", "internal/controller/facts/discovery", "internal/controller/facts/effects", "internal/controller/facts/people", "internal/controller/onboard", "internal/controller/prtext", "internal/controller/wake", "internal/fieldedit", "internal/forge", "internal/git", "internal/manifest/render", "internal/pipeline", "internal/pipeline/event", "internal/promotion", "internal/promotion/command", "internal/promotion/stored", "internal/promotion/verification", "internal/store", "internal/store/record"},
	"internal/controller/charts":                          {"internal/manifest/render"},
	"internal/controller/gateclient":                      {"policies"},
	"internal/controller/facts/discovery":                 {"internal/appset", "internal/appset/history", "internal/discover", "internal/discover/signature", "internal/fieldedit", "internal/pipeline", "internal/promotion", "internal/promotion/stored"},
	"internal/controller/facts":                           {"internal/appset", "internal/appset/history", "internal/appset/isolation", "internal/controller/facts/branch", "internal/controller/facts/discovery", "internal/controller/facts/effects", "internal/controller/facts/live", "internal/controller/facts/people", "internal/controller/wake", "internal/fieldedit", "internal/forge", "internal/git", "internal/manifest/render", "internal/pipeline", "internal/pipeline/event", "internal/proc/sandbox", "internal/promotion", "internal/promotion/cause", "internal/promotion/command", "internal/promotion/stored", "internal/promotion/verification", "internal/store", "internal/store/record", "policies"},
	"internal/controller/facts/branch":                    {"internal/appset", "internal/appset/evaluate", "internal/appset/history", "internal/argocd", "internal/controller/wake", "internal/fieldedit", "internal/forge", "internal/git", "internal/manifest/deps", "internal/manifest/render", "internal/pipeline", "internal/promotion", "internal/promotion/verification", "internal/store", "internal/store/record", "policies"},
	"internal/controller/facts/live":                      {"internal/appset", "internal/appset/isolation", "internal/argocd", "internal/controller/facts/branch", "internal/controller/wake", "internal/fieldedit", "internal/git", "internal/manifest/render", "internal/pipeline", "internal/pipeline/placeholder", "internal/promotion", "internal/promotion/stored", "internal/promotion/verification", "internal/store", "internal/store/record", "policies"},
	"internal/controller/facts/people":                    {"internal/appset", "internal/controller/facts/branch", "internal/fieldedit", "internal/forge", "internal/git", "internal/pipeline", "internal/promotion", "internal/store", "internal/store/record", "policies"},
	"internal/controller/facts/effects":                   {"internal/appset", "internal/appset/evaluate", "internal/appset/history", "internal/appset/impact", "internal/appset/isolation", "internal/argocd", "internal/controller/facts/branch", "internal/fieldedit", "internal/forge", "internal/git", "internal/manifest/deps", "internal/manifest/render", "internal/pipeline", "internal/proc/sandbox", "internal/promotion", "internal/promotion/verification"},
	"internal/controller/plan":                            {"internal/appset", "internal/appset/history", "internal/controller/facts", "internal/controller/facts/branch", "internal/controller/facts/discovery", "internal/controller/facts/effects", "internal/discover", "internal/fieldedit", "internal/forge", "internal/git", "internal/manifest/render", "internal/manifest/textdiff", "internal/pipeline", "internal/pipeline/strictyaml", "internal/promotion", "internal/promotion/cause", "internal/promotion/verification", "internal/store"},
	"internal/controller/prtext":                          {"internal/appset/impact", "internal/controller/onboard", "internal/promotion", "internal/promotion/cause", "internal/promotion/command", "policies"},
	"internal/controller/registry":                        {"internal/discover", "internal/discover/signature"},
	"internal/controller/wake":                            {"internal/promotion"},
	"internal/world/argoemulator":                         {},
	"internal/world/emulator":                             {"internal/proc", "internal/world/argoemulator"},
	"internal/world/emulator/apishape":                    {},
	"internal/world/emulator/githubshape":                 {"internal/world/emulator/apishape"},
	"internal/world/emulator/githubshape/extract":         {},
	"internal/world/emulator/githubshape/extract/graphql": {},
	"internal/world/emulator/gitlabshape":                 {"internal/world/emulator/apishape"},
	"internal/world/emulator/playground":                  {"internal/appset", "internal/git", "internal/pipeline", "internal/world/argoemulator", "internal/world/emulator", "internal/world/imageregistry"},
	"internal/world/emulator/story":                       {"internal/console/api", "internal/git", "internal/promotion", "internal/world/argoemulator", "internal/world/emulator", "internal/world/imageregistry"},
	"internal/world/evaluatetest":                         {"internal/appset/evaluate", "internal/proc/sandbox"},
	"internal/world/faulttest":                            {},
	"internal/world/forgetest":                            {"internal/forge", "webhooks"},
	"internal/world/imageregistry":                        {},
	"internal/world/intercept":                            {"internal/forge"},
	"internal/world/logintest":                            {},
	"internal/world/memoryforge":                          {"internal/forge", "internal/git"},
	"internal/world/randomset":                            {},
	"internal/world/sim":                                  {"internal/appset", "internal/appset/history", "internal/controller", "internal/controller/act", "internal/controller/facts", "internal/controller/facts/branch", "internal/controller/facts/discovery", "internal/controller/wake", "internal/discover", "internal/discover/signature", "internal/forge", "internal/git", "internal/pipeline/event", "internal/promotion", "internal/promotion/stored", "internal/promotion/verification", "internal/store", "internal/world/intercept", "internal/world/memoryforge", "webhooks"},
	"internal/world/storetest":                            {},
	"internal/world/walkthrough":                          {},
	"internal/server":                                     {"internal/appset", "internal/appset/evaluate", "internal/appset/isolation", "internal/argocd", "internal/argocd/api", "internal/console", "internal/console/api", "internal/console/login", "internal/controller", "internal/controller/act", "internal/controller/charts", "internal/controller/facts", "internal/controller/facts/branch", "internal/controller/facts/discovery", "internal/controller/facts/effects", "internal/controller/facts/people", "internal/controller/gateclient", "internal/controller/onboard", "internal/controller/registry", "internal/controller/wake", "internal/discover", "internal/discover/signature", "internal/fieldedit", "internal/forge", "internal/forge/gitea", "internal/forge/github", "internal/forge/gitlab", "internal/forge/rest", "internal/git", "internal/git/sshsig", "internal/manifest/render", "internal/notify", "internal/pipeline", "internal/proc", "internal/proc/sandbox", "internal/promotion", "internal/promotion/verification", "internal/server/config", "internal/server/doctor", "internal/store", "internal/store/record", "policies", "webhooks"},
	"internal/server/config":                              {"internal/git/sshsig", "internal/pipeline/strictyaml", "policies"},
	"internal/server/doctor":                              {"internal/argocd", "internal/forge", "internal/git", "internal/pipeline", "internal/pipeline/strictyaml", "internal/promotion", "internal/server/config", "policies"},
	"internal/cli":                                        {"internal/appset", "internal/appset/evaluate", "internal/appset/impact", "internal/cli/checkout", "internal/cli/propose", "internal/console/api", "internal/console/client", "internal/controller/charts", "internal/controller/gateclient", "internal/controller/onboard", "internal/controller/plan", "internal/controller/registry", "internal/discover", "internal/discover/signature", "internal/fieldedit", "internal/forge/github", "internal/manifest/render", "internal/pipeline", "internal/pipeline/strictyaml", "internal/proc/sandbox", "internal/promotion/command", "internal/server", "internal/server/config", "internal/server/doctor", "internal/world/emulator", "internal/world/emulator/playground", "internal/world/emulator/story"},
	"internal/cli/migrate":                                {"internal/discover", "internal/pipeline"},
	"internal/cli/propose":                                {"internal/appset", "internal/appset/history", "internal/discover", "internal/fieldedit", "internal/pipeline", "internal/pipeline/fieldpath"},
	"internal/cli/checkout":                               {"internal/appset", "internal/appset/evaluate", "internal/appset/history", "internal/appset/impact", "internal/appset/isolation", "internal/argocd", "internal/argocd/api", "internal/cli/migrate", "internal/cli/propose", "internal/controller/plan", "internal/fieldedit", "internal/git", "internal/manifest/render", "internal/pipeline", "internal/promotion"},
	"internal/e2e":                                        {},
	"cmd/liftlock":                                        {"internal/cli"},
	"deploy/dist":                                         {"internal/cli"},
	"deploy/vulncheck":                                    {},
}

// owners says which packages alone may import a library: replacing it must touch
// one folder.
var owners = map[string][]string{
	"github.com/argoproj/":                    {"internal/appset"},
	"github.com/google/go-github/":            {"internal/forge/github", "webhooks"},
	"code.gitea.io/sdk/":                      {"internal/forge/gitea", "webhooks"},
	"github.com/go-git/go-git/":               {"internal/git/smarthttp"},
	"github.com/xanzy/go-gitlab":              {"internal/forge/gitlab", "webhooks"},
	"database/sql":                            {"internal/store", "internal/world/storetest"},
	"modernc.org/sqlite":                      {"internal/store"},
	"github.com/jackc/pgx/":                   {"internal/store", "internal/world/storetest"},
	"os/exec":                                 {"internal/proc", "internal/world/walkthrough", "internal/world/emulator", "internal/world/forgetest", "deploy/vulncheck"}, // all but the first are never in serve
	"k8s.io/client-go/":                       {"internal/argocd", "internal/appset"},
	"sigs.k8s.io/controller-runtime":          {"internal/appset"},
	"sigs.k8s.io/kustomize/":                  {"internal/manifest/render"},
	"github.com/hashicorp/golang-lru/":        {"internal/cache"},
	"github.com/robfig/cron/":                 {"internal/argocd", "policies"},
	"github.com/google/cel-go/":               {"policies"},
	"github.com/hmarr/codeowners":             {"internal/controller/facts/people"},
	"github.com/standard-webhooks/":           {"internal/notify"},
	"golang.org/x/crypto/":                    {"internal/git/sshsig"},
	"golang.org/x/term":                       {"internal/cli"},
	"github.com/coreos/go-oidc/":              {"internal/console/login"},
	"golang.org/x/oauth2":                     {"internal/console/login"},
	"github.com/go-jose/go-jose/":             {"internal/world/logintest"},
	"helm.sh/helm/":                           {"internal/manifest/render"},
	"github.com/sigstore/":                    {"internal/discover/signature"},
	"github.com/google/go-containerregistry/": {"internal/controller/charts", "internal/controller/registry", "internal/promotion/verification", "internal/world/imageregistry"},
	"github.com/yuin/goldmark":                {"internal/world/emulator", "internal/promotion/command"},
	"github.com/CycloneDX/":                   {"deploy/dist"},
	"github.com/google/licenseclassifier/":    {"deploy/dist"},
	"github.com/gofrs/flock":                  {"internal/store"},
	"github.com/vektah/gqlparser/":            {"internal/world/emulator/githubshape", "internal/world/emulator/githubshape/extract/graphql"},
	"github.com/microcosm-cc/bluemonday":      {"internal/world/emulator"},
}

type listed struct {
	ImportPath string
	Imports    []string
}

// roomOf is the room that a package belongs to.
func roomOf(pkg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pkg, "internal/"), "/")
	return name
}

// TestRooms holds these rules over direct imports.
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
			t.Errorf("%s is no package that this test knows: add it here and to docs/architecture.md, or move it", room)
			continue
		}
		for _, imp := range p.Imports {
			if own, ours := strings.CutPrefix(imp, module); ours {
				if !slices.Contains(may, own) && !slices.Contains(anybody, own) {
					t.Errorf("%s imports %s; it may import %q", room, own, may)
				}
				if slices.Index(floors, roomOf(own)) > slices.Index(floors, roomOf(room)) {
					t.Errorf("%s imports %s, which is above it", room, own)
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
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, d := range folders {
		if !d.IsDir() || d.Name() == "testdata" {
			continue
		}
		count++
		if !slices.Contains(floors, d.Name()) {
			t.Errorf("internal/%s stands on no floor", d.Name())
		}
	}
	if count > maxRooms {
		t.Errorf("internal/ has %d rooms, more than %d", count, maxRooms)
	}
	if seen < len(rooms)/2 {
		t.Fatalf("only %d packages were listed", seen)
	}
}
