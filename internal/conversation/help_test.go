package conversation_test

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/command"
	"github.com/liftlock/liftlock/internal/conversation"
)

func TestHelpTellsEveryCommand(t *testing.T) {
	text := conversation.HelpText(false)
	for _, v := range command.Verbs() {
		if !strings.Contains(text, "`/liftlock "+v) {
			t.Errorf("help says nothing of %s", v)
		}
	}
	if cmds, errs := command.Parse(conversation.Answer("ada", "help", text, 1), true); len(cmds)+len(errs) > 0 {
		t.Errorf("an answer gives commands: %v %v", cmds, errs)
	}
}
