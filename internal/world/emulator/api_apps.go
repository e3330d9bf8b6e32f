package emulator

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

const (
	// installationTokenLife and maxTokenAhead are GitHub's: an hour, and ten minutes.
	installationTokenLife = time.Hour
	maxTokenAhead         = 10 * time.Minute
)

// appRoutes are called with an App's own token.
var appRoutes = []route{
	{pattern: "GET /app", handle: withSignedApp(func(c *call) (any, error) { return c.wireApp(c.app), nil })},
	{pattern: "GET /app/installations", handle: withSignedApp(listInstallations)},
	{pattern: "GET /app/installations/{id}", handle: withSignedApp(getInstallation)},
	{pattern: "POST /app/installations/{id}/access_tokens", handle: withSignedApp(createInstallationToken)},
	{pattern: "GET /app/hook/config", handle: withSignedApp(getAppHook)},
	{pattern: "PATCH /app/hook/config", handle: withSignedApp(patchAppHook)},
	{pattern: "GET /app/hook/deliveries", handle: withSignedApp(func(c *call) (any, error) { return listDeliveries(c, c.app.hook) })},
	{pattern: "GET /app/hook/deliveries/{delivery}", handle: withSignedApp(func(c *call) (any, error) {
		return readDelivery(c, c.app.hook,
			getDelivery)
	})},
	{pattern: "GET " + repoPath + "/installation", byApp: true, handle: withSignedApp(findRepositoryInstallation)},
}

// withSignedApp answers only an App's own token.
func withSignedApp(answer handler) handler {
	return func(c *call) (any, error) {
		if c.app == nil {
			return nil, newAPIError(http.StatusUnauthorized, "A JSON web token could not be decoded")
		}
		return answer(c)
	}
}

// signInApp finds the App that a JSON web token is signed by.
func (c *call) signInApp(token string) error {
	refused := func(words string) error { return newAPIError(http.StatusUnauthorized, "%s", words) }
	var claims jwt.MapClaims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	if _, _, err := parser.ParseUnverified(token, &claims); err != nil {
		return refused("A JSON web token could not be decoded")
	}
	issuer := fmt.Sprint(claims["iss"])
	if n, ok := claims["iss"].(float64); ok {
		issuer = strconv.FormatInt(int64(n), 10)
	}
	for _, a := range c.apps {
		if issuer == a.clientID || issuer == strconv.FormatInt(a.id, 10) {
			c.app = a
		}
	}
	if c.app == nil {
		return newAPIError(http.StatusNotFound, "Integration not found")
	}
	if !slices.ContainsFunc(c.app.keys, func(key *rsa.PublicKey) bool {
		_, err := parser.Parse(token, func(*jwt.Token) (any, error) { return key, nil })
		return err == nil
	}) {
		return refused("A JSON web token could not be decoded")
	}
	now := c.now()
	exp, whole := wholeSeconds(claims["exp"])
	if !whole || !exp.After(now) {
		return refused("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion " +
			"expires")
	}
	if exp.After(now.Add(maxTokenAhead)) {
		return refused("'Expiration time' claim ('exp') is too far in the future")
	}
	if iat, whole := wholeSeconds(claims["iat"]); !whole || iat.After(now) {
		return refused("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	c.user = c.app.bot
	return c.chargeQuota()
}

// wholeSeconds reads a time of a claim, which GitHub takes without fractions only.
func wholeSeconds(claim any) (time.Time, bool) {
	n, ok := claim.(float64)
	return time.Unix(int64(n), 0), ok && n == math.Trunc(n)
}

// signInInstallation makes the call the bot's, with what its token is good for.
func (c *call) signInInstallation(t *installationToken) error {
	if !c.now().Before(t.expires) {
		return newAPIError(http.StatusUnauthorized, "Bad credentials")
	}
	if !t.installation.suspended.IsZero() {
		return newAPIError(http.StatusForbidden, "This installation has been suspended")
	}
	c.user, c.token = t.installation.app.bot, t
	return c.chargeQuota()
}

// requireToken refuses what an installation's token isn't good for.
func (c *call) requireToken(rt *route) error {
	if c.repo != nil && !c.token.covers(c.repo) {
		return notFound()
	}
	names, level := appPermissions(rt.pattern)
	if names == nil || slices.ContainsFunc(names, func(n string) bool {
		return c.token.permissions[n] == "write" || c.token.permissions[n] == level
	}) {
		return nil
	}
	e := newAPIError(http.StatusForbidden, "Resource not accessible by integration")
	var accepted []string
	for _, n := range names {
		accepted = append(accepted, n+"="+level)
	}
	e.Header = http.Header{"X-Accepted-Github-Permissions": {strings.Join(accepted, "; ")}}
	return e
}

// appPermissions are the permissions one of which a route needs ("Permissions required for
// GitHub Apps"); none: no particular one.
func appPermissions(pattern string) (names []string, level string) {
	method, path, _ := strings.Cut(pattern, " ")
	level = "write"
	if method == http.MethodGet {
		level = "read"
	}
	if pattern == "POST /graphql" {
		return []string{"contents"}, "read" // it only reads
	}
	rest := strings.TrimPrefix(path, repoPath)
	for _, p := range []struct {
		prefix string
		names  []string
	}{
		{"/user", nil}, {"/collaborators/", []string{"metadata"}}, {"/orgs/", []string{"members"}},
		{"/branches/{branch}/protection", []string{"administration"}}, {"/branches/", []string{"contents"}},
		{"/pulls/{number}/merge", []string{"contents"}}, {"/pulls", []string{"pull_requests"}},
		{"/issues", []string{"issues", "pull_requests"}}, {"/labels", []string{"issues", "pull_requests"}},
		{"/statuses", []string{"statuses"}}, {"/commits/{sha}/status", []string{"statuses"}}, {"/commits/{sha}/check-runs",
			[]string{"checks"}},
		{"/commits/{sha}/pulls", []string{"pull_requests"}}, {"/deployments", []string{"deployments"}},
		{"/hooks", []string{"repository_hooks"}},
		{"/git/", []string{"contents"}}, {"/commits", []string{"contents"}}, {"/compare/", []string{"contents"}},
		{"/activity", []string{"contents"}},
	} {
		if strings.HasPrefix(rest, p.prefix) {
			return p.names, level
		}
	}
	return []string{"metadata"}, level
}

func listInstallations(c *call) (any, error) {
	return paginateAs(c, c.app.installations, c.wireInstallation), nil
}

// installationOfPath finds the installation of the path.
func (c *call) installationOfPath() (*appInstallation, error) {
	id, err := c.pathNumber("id")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.app.installations, func(i *appInstallation) bool { return i.id == id })
	if i < 0 {
		return nil, notFound()
	}
	return c.app.installations[i], nil
}

func getInstallation(c *call) (any, error) {
	i, err := c.installationOfPath()
	if err != nil {
		return nil, err
	}
	return c.wireInstallation(i), nil
}

// findRepositoryInstallation follows a repository to where it is now.
func findRepositoryInstallation(c *call) (any, error) {
	name := strings.ToLower(c.r.PathValue("owner") + "/" + c.r.PathValue("repo"))
	r := c.repos[name]
	if r == nil {
		r = c.formerNames[name]
	}
	if r == nil {
		return nil, notFound()
	}
	i := c.app.installationOf(r)
	if i == nil {
		return nil, notFound()
	}
	return c.wireInstallation(i), nil
}

// createInstallationToken makes a token for what is asked for of what was granted.
func createInstallationToken(c *call) (any, error) {
	i, err := c.installationOfPath()
	if err != nil {
		return nil, err
	}
	if !i.suspended.IsZero() {
		return nil, newAPIError(http.StatusForbidden, "This installation has been suspended")
	}
	var in struct {
		Repositories []string          `json:"repositories"`
		IDs          []int64           `json:"repository_ids"`
		Permissions  map[string]string `json:"permissions"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	t := &installationToken{installation: i, expires: c.now().Add(installationTokenLife), permissions: maps.Clone(i.permissions)}
	if in.Permissions != nil {
		for name, level := range in.Permissions {
			if granted := i.permissions[name]; granted != level && granted != "write" {
				return nil, newAPIError(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			}
		}
		t.permissions = in.Permissions
	}
	var shown []*wireRepo
	if len(in.Repositories)+len(in.IDs) > 0 {
		t.repos = map[string]bool{}
		for _, r := range c.repos {
			if i.covers(r) && (slices.Contains(in.IDs, r.id) || slices.ContainsFunc(in.Repositories,
				func(n string) bool { return strings.EqualFold(n, r.name) })) {
				t.repos[strings.ToLower(r.name)] = true
				shown = append(shown, c.wireRepo(r, nil))
			}
		}
		if len(t.repos) < len(in.Repositories)+len(in.IDs) {
			return nil, newAPIError(http.StatusUnprocessableEntity,
				"There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
	}
	var secret [18]byte
	_, _ = rand.Read(secret[:]) // never fails: crypto/rand ends the program instead
	value := "ghs_" + hex.EncodeToString(secret[:])
	c.installationTokens[value] = t
	c.status = http.StatusCreated
	answer := restObject{"token": value, "expires_at": t.expires, "permissions": t.permissions, "repository_selection": i.selection()}
	if shown != nil {
		answer["repositories"], answer["repository_selection"] = shown, "selected"
	}
	return answer, nil
}

func (a *appInstallation) selection() string {
	if a.repos == nil {
		return "all"
	}
	return "selected"
}

func getAppHook(c *call) (any, error) { return wireAppHook(c.app.hook), nil }

// patchAppHook changes what it is sent, and nothing else.
func patchAppHook(c *call) (any, error) {
	var in struct {
		URL         *string `json:"url"`
		ContentType *string `json:"content_type"`
		Secret      *string `json:"secret"`
		InsecureSSL any     `json:"insecure_ssl"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	h := c.app.hook
	for of, value := range map[*string]*string{&h.url: in.URL, &h.contentType: in.ContentType, &h.secret: in.Secret} {
		if value != nil {
			*of = *value
		}
	}
	if in.InsecureSSL != nil {
		h.insecure = fmt.Sprint(in.InsecureSSL)
	}
	h.updated = c.now()
	return wireAppHook(h), nil
}

func wireAppHook(h *hook) restObject {
	w := restObject{"url": h.url, "content_type": h.contentType, "insecure_ssl": h.insecure}
	if h.secret != "" {
		w["secret"] = "********"
	}
	return w
}

func (f *Forge) wireApp(a *app) restObject {
	return restObject{
		"id": a.id, "slug": a.Slug, "client_id": a.clientID, "node_id": nodeID("A", a.id), "name": a.Slug, "html_url": f.url +
			"/apps/" + a.Slug,
		"permissions": a.Permissions, "events": orEmpty(a.Events), "installations_count": len(a.installations),
	}
}

func (f *Forge) wireInstallation(i *appInstallation) restObject {
	return restObject{
		"id": i.id, "app_id": i.app.id, "app_slug": i.app.Slug, "account": f.wireUser(i.owner), "target_id": i.owner.id,
		"target_type":       i.owner.kind,
		"access_tokens_url": fmt.Sprintf("%s/app/installations/%d/access_tokens", f.url, i.id), "repositories_url": f.url +
			"/installation/repositories",
		"html_url":             fmt.Sprintf("%s/organizations/%s/settings/installations/%d", f.url, i.owner.login, i.id),
		"repository_selection": i.selection(),
		"permissions":          i.permissions, "events": orEmpty(i.app.Events), "created_at": i.created, "updated_at": i.created,
		"suspended_at":     timeOrNull(i.suspended),
		"single_file_name": nil, "has_multiple_single_files": false,
	}
}

// isSigned says whether a token is a JSON web token.
func isSigned(token string) bool {
	header, _, ok := strings.Cut(token, ".")
	if !ok || strings.Count(token, ".") != 2 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(header)
	return err == nil && json.Valid(text)
}
