package intercept

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// free are the methods that ask nothing of the forge itself.
var free = map[string]bool{"CloneURL": true, "GitAuth": true, "CommitURL": true, "CompareURL": true, "MayOpen": true, "HasDeployments": true}

// TestEachCallIsIntercepted: every other method of a forge goes through the function, by its name,
// and its error is what the caller gets.
func TestEachCallIsIntercepted(t *testing.T) {
	refused := errors.New("refused")
	var seen []Call
	f := New(nil, func(_ context.Context, c Call, _ func() error) error {
		seen = append(seen, c)
		return refused
	})
	all := reflect.TypeFor[forge.Forge]()
	for i := range all.NumMethod() {
		m := all.Method(i)
		if free[m.Name] {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		last := m.Type.NumIn()
		if m.Type.IsVariadic() {
			last--
		}
		for n := 1; n < last; n++ {
			arg := reflect.Zero(m.Type.In(n))
			if arg.Kind() == reflect.Pointer {
				arg = reflect.New(m.Type.In(n).Elem())
			}
			args = append(args, arg)
		}
		seen = nil
		out := reflect.ValueOf(f).MethodByName(m.Name).Call(args)
		if len(seen) != 1 || seen[0].Name != m.Name || !errors.Is(out[len(out)-1].Interface().(error), refused) {
			t.Errorf("%s is seen as %v, and gives %v", m.Name, seen, out)
		}
	}
}

type aForge struct{ forge.Forge }

func (aForge) Me(context.Context) (forge.User, error) { return forge.User{Login: "linus"}, nil }

// TestLostAnswers: a call that fails once it was made gives no answer.
func TestLostAnswers(t *testing.T) {
	lost, made := errors.New("lost"), 0
	f := New(aForge{}, func(_ context.Context, _ Call, do func() error) error {
		if err := do(); err != nil {
			return err
		}
		if made++; made == 1 {
			return nil
		}
		return lost
	})
	if me, err := f.Me(t.Context()); me.Login != "linus" || err != nil {
		t.Errorf("an answer: %v, %v", me, err)
	}
	if me, err := f.Me(t.Context()); me.Login != "" || !errors.Is(err, lost) {
		t.Errorf("a lost one: %v, %v", me, err)
	}
}
