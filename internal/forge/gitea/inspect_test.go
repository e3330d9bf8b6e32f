package gitea

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// TestInspect reads settings that the contract's fresh repositories don't have.
func TestInspect(t *testing.T) {
	r, d, _ := newReplayServer(t)
	ctx, wanted := context.Background(), forge.Hook{URL: "https://liftlock.example.com/webhooks/hub", Secret: "the secret"}
	r.on("GET repos/acme/fleet", okResponse(jsonObject{
		"id": 7, "full_name": "acme/vessels", "default_branch": "trunk", "archived": true, "has_pull_requests": false,
		"allow_merge_commits": false, "allow_squash_merge": true, "permissions": jsonObject{"pull": true},
	}))
	got, err := d.InspectRepository(ctx, testRepoName)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "acme/vessels" || got.DefaultBranch != "trunk" || !got.Archived || !got.NoPulls || !slices.Equal(got.Methods, []string{"squash"}) || got.Permission != forge.PermissionRead {
		t.Errorf("the repository is %+v", got)
	}
	if n, err := d.RepositoryNumber(ctx, testRepoName); err != nil || n != 7 {
		t.Errorf("its number is %d, %v", n, err)
	}
	hook := func(change jsonObject) jsonObject {
		h := jsonObject{"id": 1, "active": true, "config": jsonObject{"url": wanted.URL, "content_type": "json"}, "authorization_header": rest.Fingerprint(wanted.Secret),
			"events": append([]string{"push", "delete", "status"}, pullEvents...)}
		for k, v := range change {
			h[k] = v
		}
		return h
	}
	for name, c := range map[string]struct {
		change jsonObject
		wrong  func(h *forge.HookSettings) bool
	}{
		"another secret": {jsonObject{"authorization_header": rest.Fingerprint("another")}, func(h *forge.HookSettings) bool { return !h.OtherSecret }},
		"made by hand":   {jsonObject{"authorization_header": ""}, func(h *forge.HookSettings) bool { return h.OtherSecret }},
		"some branches":  {jsonObject{"branch_filter": "release/*"}, func(h *forge.HookSettings) bool { return h.WrongFormat == "" }},
		"a form":         {jsonObject{"config": jsonObject{"url": wanted.URL, "content_type": "form"}}, func(h *forge.HookSettings) bool { return h.WrongFormat == "" }},
		"no comments":    {jsonObject{"events": []string{"push", "delete", "status"}}, func(h *forge.HookSettings) bool { return len(h.MissingEvents) != len(pullEvents) }},
		"switched off":   {jsonObject{"active": false}, func(h *forge.HookSettings) bool { return h.Active }},
		"as it is wanted": {nil, func(h *forge.HookSettings) bool {
			return h.OtherSecret || h.WrongFormat != "" || len(h.MissingEvents) > 0 || !h.Active || h.IsFailing()
		}},
	} {
		list := okResponse([]jsonObject{hook(c.change), hook(jsonObject{"config": jsonObject{"url": "https://ci.example.com"}})})
		list.header = map[string]string{"X-Total-Count": "2"}
		r.on("GET repos/acme/fleet/hooks", list)
		found, err := d.InspectHooks(ctx, testRepoName, wanted)
		if err != nil {
			t.Fatal(name, err)
		}
		if len(found) != 1 || c.wrong(&found[0]) {
			t.Errorf("%s: %+v", name, found)
		}
	}
	r.on("GET user", response{status: http.StatusOK, header: map[string]string{"Date": "Mon, 02 Mar 2026 09:00:00 GMT"}, body: `{"login":"liftlock-bot"}`})
	c, err := d.InspectCredentials(ctx)
	if err != nil || c.ServerTime.Format("15:04") != "09:00" {
		t.Errorf("the credentials are %+v, %v", c, err)
	}
}
