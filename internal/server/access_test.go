package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// TestForgeRightsOfReaders holds, over the whole service, that with access a repository is shown
// only to accounts that may read it on the forge, commands and metrics included.
func TestForgeRightsOfReaders(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		idp := logintest.New(t, time.Now)
		idp.With(func(p *logintest.Provider) {
			p.Change = func(claims map[string]any) { claims["nickname"] = claims["preferred_username"] }
		})
		lines := fmt.Sprintf(`access: [{repositories: [ACME/fleet], tokens: [ops], forge: true}]
readAccess: token
oidc:
  issuer: %s
  clientID: %s
  clientSecret: "%s"
  accounts: {hub: nickname}
  roles: {viewer: ["*"], operator: [sre]}
`, idp.URL, logintest.ClientID, logintest.ClientSecret)
		s := startHarness(t, harnessOptions{face: face, externalURL: "https://" + externalName, serverLines: lines})
		for _, login := range []string{"reader-r", "stranger-x"} {
			s.must("add somebody", s.Forge.AddUser(login, "token-of-"+login, emulator.UserOptions{}))
		}
		s.must("let somebody read", s.Forge.Grant(repoName, "reader-r", emulator.Read))
		reader, stranger := s.logIn(idp, "reader-r"), s.logIn(idp, "stranger-x", "sre")
		s.waitFor("who may read it on the forge sees it", func() (bool, string) {
			status, body := reader.do(http.MethodGet, "/api/v1/pipelines", nil)
			return status == http.StatusOK && strings.Contains(body, repoName), fmt.Sprint(status, body)
		})
		for path, want := range map[string]int{
			"/api/v1/pipelines": http.StatusOK, "/": http.StatusOK, "/audit": http.StatusOK, "/pipelines/shop": http.StatusNotFound,
			"/act/pipelines/shop/hold": http.StatusNotFound, "/metrics": http.StatusForbidden,
		} {
			status, body := stranger.do(http.MethodGet, path, nil)
			shown := strings.Contains(body, repoName) || path == "/metrics" && strings.Contains(body, "web")
			if status != want || shown {
				t.Errorf("%s, for who may not: %d, want %d\n%s", path, status, want, body)
			}
		}
	})
}
