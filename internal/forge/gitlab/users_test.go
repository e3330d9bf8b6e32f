package gitlab

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

func TestMemberPermission(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		m    member
		want forge.Permission
	}{
		{"none", member{}, forge.PermissionNone},
		{"minimal access", member{AccessLevel: 5}, forge.PermissionNone},
		{"a guest", member{AccessLevel: 10}, forge.PermissionRead},
		{"a planner", member{AccessLevel: 15}, forge.PermissionRead},
		{"a reporter", member{AccessLevel: 20}, forge.PermissionRead},
		{"a developer", member{AccessLevel: 30}, forge.PermissionWrite},
		{"a maintainer", member{AccessLevel: 40}, forge.PermissionAdmin},
		{"an owner", member{AccessLevel: 50}, forge.PermissionAdmin},
		{"active", member{AccessLevel: 30, State: "active", Membership: "active"}, forge.PermissionWrite},
		{"blocked", member{AccessLevel: 50, State: "blocked"}, forge.PermissionNone},
		{"locked out", member{AccessLevel: 50, State: "active", Locked: true}, forge.PermissionNone},
		{"not yet confirmed", member{AccessLevel: 50, Membership: "awaiting"}, forge.PermissionNone},
		{"until tomorrow", member{AccessLevel: 30, ExpiresAt: "2026-03-03"}, forge.PermissionWrite},
		{"until today", member{AccessLevel: 30, ExpiresAt: "2026-03-02"}, forge.PermissionNone},
		{"until a time", member{AccessLevel: 30, ExpiresAt: "2026-03-03T00:00:00Z"}, forge.PermissionWrite},
		{"until nobody knows", member{AccessLevel: 30, ExpiresAt: "soon"}, forge.PermissionNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.m.permission(now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestBotNames(t *testing.T) {
	for login, want := range map[string]bool{
		"ada": false, "project_7_bot": true, "project_7_bot_0a1b2c": true, "group_12_bot_9f": true, "service_account_group_3_ab": true,
		"project_x_bot": false, "my_project_7_bot": false, "botanist": false,
	} {
		if got := (&account{Username: login}).isBot(); got != want {
			t.Errorf("%s: %v, want %v", login, got, want)
		}
	}
	if !(&account{Username: "ada", Bot: true}).isBot() || (*account)(nil).isBot() {
		t.Error("what GitLab says doesn't count, or nobody is a program")
	}
}

func TestPrivateAddresses(t *testing.T) {
	_, d := newReplayServer(t)
	d.base.Host = "git.example.com:8443"
	u, err := d.findUserByEmail(ctx, "12-ada-l@users.noreply.GIT.example.com")
	if err != nil || u != (forge.User{ID: 12, Login: "ada-l"}) {
		t.Errorf("got %+v, %v", u, err)
	}
}
