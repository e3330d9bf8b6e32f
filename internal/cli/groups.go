package cli

import (
	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/promotion/command"
)

// commandGroup is a part of the list of commands in help, in the order in which it is shown.
type commandGroup struct {
	id, title string
	commands  []*cobra.Command
}

// groupRun is what runs, and all that cobra adds.
const groupRun = "run"

// addGroups adds all commands to the root. The first group has the five of the first day.
func addGroups(root *cobra.Command) {
	for _, g := range []commandGroup{
		{"start", "Start:", []*cobra.Command{demoCommand(), initCommand(), validateCommand(), planCommand(), doctorCommand()}},
		{"inspect", "Inspect:", []*cobra.Command{statusCommand(), promotionsCommand(), whyCommand(), diffCommand(), compareCommand(),
			auditCommand(), resolveCommand(), impactCommand(), discoverCommand()}},
		{"act", "Act:", actCommands()},
		{groupRun, "Run:", []*cobra.Command{serveCommand(), playgroundCommand(), loginCommand(), contextsCommand(),
			sandboxCommand(), proposeCommand(), versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID(groupRun)
	root.SetCompletionCommandGroupID(groupRun)
}

// actCommands are the commands that change something: a file, or by a server's API.
func actCommands() []*cobra.Command {
	all := []*cobra.Command{setCommand(), releaseCommand(), promoteCommand(), holdCommand(command.Hold), holdCommand(command.Unhold)}
	for _, v := range command.OnPromotion() {
		if v.IsPlain() {
			all = append(all, onPromotionCommand(v))
		}
	}
	return append(all, skipCommand())
}
