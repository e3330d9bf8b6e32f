package github

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// publicGitHub sends what is for api.github.com to an emulator, by its address: only of the public
// service the limits are published.
type publicGitHub string

func (p publicGitHub) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(string(p))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, to.Host
	return http.DefaultTransport.RoundTrip(r)
}

// TestSecondaryLimits holds that at GitHub's published limits no call is refused, however much
// there is to write. At a tenth of them all is written in the end, and a merge doesn't wait for it.
// The calls are made by the transport alone, in virtual time: go-github, which remembers refusals
// too, knows only the real one.
func TestSecondaryLimits(t *testing.T) {
	for _, share := range []int{1, 10} {
		t.Run(fmt.Sprintf("1/%d", share), func(t *testing.T) {
			begin := time.Now().Truncate(time.Second)
			now := begin
			clock := func() time.Time { return now }
			em, err := emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), Now: clock, SecondaryShare: share, RateLimit: 5000})
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(err)
			t.Cleanup(func() { must(em.Close()) })
			must(em.AddUser("linus", "linus-token", emulator.UserOptions{}))
			must(em.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "linus", Files: map[string]string{"a": "a\n"}, Access: map[string]emulator.Permission{"linus": emulator.Write}}))
			_, err = em.CommitAs("acme/fleet", "linus", "topic", "Change", map[string]string{"a": "b\n"})
			must(err)
			base, err := parseBase("")
			must(err)
			client, _ := rest.New(rest.Protocol{Options: rest.Options{HTTPClient: &http.Client{Transport: publicGitHub(em.URL())}, Now: clock}, Base: base, Authorization: "Bearer linus-token", Limits: limitsOf(base, false)})

			// send makes a call until the forge has taken it.
			send := func(p forge.Priority, method, path, body string) {
				t.Helper()
				for range 10_000 {
					req, err := http.NewRequestWithContext(forge.WithPriority(t.Context(), p), method, base.String()+"repos/acme/fleet/"+path, strings.NewReader(body))
					must(err)
					resp, err := client.Do(req)
					var refused *rest.RefusedError
					switch {
					case errors.As(err, &refused) && refused.Until.After(now):
						now = refused.Until
						continue
					case err != nil:
						t.Fatal(err)
					}
					resp.Body.Close()
					if resp.StatusCode/100 == 2 {
						return
					}
					if resp.StatusCode != http.StatusForbidden {
						t.Fatalf("%s %s: HTTP %d", method, path, resp.StatusCode)
					}
				}
				t.Fatalf("%s %s is refused for ever", method, path)
			}
			send(forge.PriorityNormal, "POST", "pulls", `{"title":"T","head":"topic","base":"main"}`)
			say := func(n int) {
				for range n {
					send(forge.PriorityComment, "POST", "issues/1/comments", `{"body":"x"}`)
				}
			}
			say(200 / share)
			before := now
			send(forge.PriorityUrgent, "PUT", "pulls/1/merge", `{}`)
			merged := now.Sub(before)
			say(600 / share)
			t.Logf("merged after %s, ended after %s, %d refused", merged, now.Sub(begin), em.Limited())
			switch {
			case share == 1 && (em.Limited() > 0 || merged > 0):
				t.Errorf("%d calls were refused, the merge waited for %s", em.Limited(), merged)
			case share > 1 && em.Limited() == 0:
				t.Error("nothing was refused: the limits aren't a tenth")
			case merged > 15*time.Minute: // the longest that refusals alone close it for
				t.Errorf("the merge waited for %s", merged)
			}
		})
	}
}
