package server_test

import (
	"cmp"
	"os"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/emulator/story"
)

// forgeFace is the face of the forge that the stories are told on: GitHub's, unless the
// environment has another FORGE.
func forgeFace() emulator.Face { return cmp.Or(emulator.Face(os.Getenv("FORGE")), emulator.GitHub) }

// githubFace is GitHub's, for stories of what it alone has: as an App where FORGE says so.
func githubFace() emulator.Face {
	if forgeFace() == emulator.GitHubApp {
		return emulator.GitHubApp
	}
	return emulator.GitHub
}

// eachFace runs a test on the faces of the forge.
func eachFace(t *testing.T, test func(t *testing.T, face emulator.Face)) {
	t.Helper()
	t.Parallel()
	for _, face := range []emulator.Face{githubFace(), emulator.GitLab} {
		t.Run(string(face), func(t *testing.T) { test(t, face) })
	}
}

// skipOnGitLab skips what can't hold on GitLab's face.
func skipOnGitLab(t *testing.T, why string) {
	t.Helper()
	if forgeFace() == emulator.GitLab {
		t.Skip("not on GitLab: " + why)
	}
}

// isApp says whether the server works as a GitHub App, which is installed in acme.
func (ha *harness) isApp() bool { return ha.opts.face == emulator.GitHubApp }

// addBot makes the account that the server works as.
func (ha *harness) addBot() {
	ha.t.Helper()
	if ha.isApp() {
		as, err := story.NewAppIdentity(ha.Forge, ha.dir, "acme", ha.opts.manageHook)
		ha.must("register the App", err)
		ha.bot, ha.auth = as.Login, as.Auth
		return
	}
	ha.bot, ha.auth = "liftlock-bot", "{token: "+botToken+"}"
	ha.must("add the bot", ha.Forge.AddUser(ha.bot, botToken, emulator.UserOptions{}))
}

// makeHook points a webhook at the server by hand: the repository's, or the App's, which is one
// for all repositories.
func (ha *harness) makeHook() {
	ha.t.Helper()
	h := emulator.Hook{URL: ha.url + "/webhooks/hub", Secret: secret, Active: true}
	if ha.isApp() {
		ha.must("point the App's hook at the server", ha.Forge.SetAppHook(story.AppSlug, h.URL, h.Secret))
		return
	}
	ha.must("make a hook", ha.Forge.AddHook(repoName, "linus", h))
}

// TestOtherFaces tells a few of the stories on the other faces too. make stories FORGE=github-app
// and FORGE=gitlab tell all of them there.
func TestOtherFaces(t *testing.T) {
	t.Parallel()
	for _, face := range []emulator.Face{emulator.GitHubApp, emulator.GitLab} {
		if forgeFace() == face {
			continue // all stories are told on it
		}
		for name, run := range map[string]func(*testing.T, emulator.Face){
			"the main job and a lost database": testStory,
			"branches":                         testStoryOnBranches,
			"a batch":                          testBatch,
			"a revert by command":              testRevertByCommand,
			"questions in comments":            testQuestions,
			"a person's squash":                testSquashByPerson,
		} {
			t.Run(string(face)+"/"+name, func(t *testing.T) { run(t, face) })
		}
	}
}
