package prtext_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

func TestHelpListsEveryCommand(t *testing.T) {
	text := prtext.HelpText(false)
	for _, v := range command.Verbs() {
		if !strings.Contains(text, "`/liftlock "+string(v)) {
			t.Errorf("help says nothing of %s", v)
		}
	}
	if cmds, errs := command.Parse(prtext.Reply("ada", "help", text, 1), true); len(cmds)+len(errs) > 0 {
		t.Errorf("an answer gives commands: %v %v", cmds, errs)
	}
}
