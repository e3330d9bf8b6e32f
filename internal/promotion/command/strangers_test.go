package command

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

// admit lets a comment in as the controller does: what somebody may do is asked for where
// it has to be.
func admit(s *Strangers, login, comment string, questions bool, may Permission, now time.Time) (a Admission, lookups int) {
	if a, _ = s.Admit(login, comment, questions, now); a == LookUp {
		s.Learn(login, may, now)
		a, _ = s.Admit(login, comment, questions, now)
		lookups++
	}
	return a, lookups
}

// TestStrangersAreRefusedOnce holds that of many comments of a person who may not write one is
// answered, and that a person who may write is always served.
func TestStrangersAreRefusedOnce(t *testing.T) {
	s, served, lookups := &Strangers{}, 0, 0
	for i := range 100 {
		now := noon.Add(time.Duration(i) * time.Second)
		a, n := admit(s, "Mallory", fmt.Sprint(i), false, None, now)
		if lookups += n; a == Serve {
			served++
		}
		if a, _ := admit(s, "ada", fmt.Sprint("hers ", i), false, Write, now); a != Serve {
			t.Fatalf("command %d of somebody who may write: %v", i, a)
		}
		if s = throughJSON(t, s); len(s.Persons) != 2 {
			t.Fatalf("remembered are %v", s.Persons)
		}
	}
	if served != 1 || lookups != 1 {
		t.Errorf("%d comments were served after %d questions to the forge, want one each", served, lookups)
	}
	if a, _ := admit(s, "mallory", "later", false, None, noon.Add(refusedFor)); a != Serve {
		t.Errorf("ten minutes later: %v", a)
	}
}

// throughJSON is what is left of a value that was written and read.
func throughJSON(t *testing.T, s *Strangers) *Strangers {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out Strangers
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestReadersAreAnswered holds that a reader's questions are answered within a budget, and that an
// earlier refusal doesn't prevent that. A comment that was let through is let through again, for a
// run that died before it had answered.
func TestReadersAreAnswered(t *testing.T) {
	s := &Strangers{}
	if a, _ := admit(s, "rita", "a typo", false, Read, noon); a != Serve {
		t.Fatalf("her first command: %v", a)
	}
	if a, _ := admit(s, "rita", "a typo", false, Read, noon); a != Serve {
		t.Errorf("the same again: %v", a)
	}
	served := 0
	for i := range 50 {
		if a, _ := admit(s, "rita", fmt.Sprint(i), true, Read, noon); a == Serve {
			served++
		}
	}
	if served != questionsPerPerson {
		t.Errorf("%d questions were answered, want %d", served, questionsPerPerson)
	}
	if a, _ := admit(s, "rita", "another", true, Read, noon.Add(everyQuestion)); a != Serve {
		t.Errorf("a question some time later: %v", a)
	}
}

// TestAdmit holds what happens to a second comment, at the times when that changes.
func TestAdmit(t *testing.T) {
	const login = "rita"
	for name, test := range map[string]struct {
		may       Permission
		refused   bool          // a command of hers was refused at noon
		answered  int           // so many questions of hers were let through at noon
		questions bool          // what she comments now are questions
		after     time.Duration // since noon
		want      Admission
	}{
		"a reader's next command isn't answered":           {may: Read, refused: true, want: Ignore},
		"but her question is":                              {may: Read, refused: true, questions: true, want: Serve},
		"a stranger's question isn't either":               {refused: true, questions: true, want: Ignore},
		"a stranger's second question isn't":               {answered: 1, questions: true, want: Ignore},
		"a command of who asked too much is refused":       {may: Read, answered: questionsPerPerson, want: Serve},
		"another question isn't answered":                  {may: Read, answered: questionsPerPerson, questions: true, want: Ignore},
		"what she may do is believed for a while":          {may: Read, after: strangerFor - time.Second, want: Serve},
		"and then asked for again":                         {may: Read, after: strangerFor, want: LookUp},
		"who may write is believed for longer":             {may: Write, after: writerFor - time.Second, want: Serve},
		"and then asked for again, whatever others cost":   {may: Write, after: writerFor, want: LookUp},
		"also where nobody else's permission is asked for": {may: Admin, after: 2 * writerFor, want: LookUp},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Strangers{}
			s.Learn(login, test.may, noon)
			if test.refused {
				if a, _ := s.Admit(login, "refused", false, noon); a != Serve {
					t.Fatalf("her first command: %v", a)
				}
			}
			for i := range test.answered {
				if a, _ := s.Admit(login, fmt.Sprint(i), true, noon); a != Serve {
					t.Fatalf("question %d: %v", i, a)
				}
			}
			now := noon.Add(test.after)
			if test.may >= Write {
				s.Lookups = bucket{At: now} // others took all
			}
			a, until := s.Admit(login, "now", test.questions, now)
			if a != test.want || !until.IsZero() {
				t.Errorf("it is %v until %s, want %v", a, until, test.want)
			}
		})
	}
}

// TestStrangersForgetTheOldest holds who is forgotten where there is no room: who was seen
// longest ago, whatever the name.
func TestStrangersForgetTheOldest(t *testing.T) {
	s := &Strangers{}
	for i := range maxPersons {
		s.Learn(fmt.Sprintf("person%03d", i), Read, noon.Add(time.Duration((i+maxPersons/2)%maxPersons)*time.Second))
	}
	oldest := fmt.Sprintf("person%03d", maxPersons/2)
	s.Learn("somebody", Read, noon.Add(time.Hour))
	if s.Persons[oldest] != nil || s.Persons["person000"] == nil || len(s.Persons) != maxPersons {
		t.Errorf("of %d persons %s is remembered: %t", len(s.Persons), oldest, s.Persons[oldest] != nil)
	}
}

// TestStrangersForgetByName holds that of several who were seen at the same time the first
// by name is forgotten, so that the same happens whenever it happens again.
func TestStrangersForgetByName(t *testing.T) {
	s := &Strangers{}
	for i := range maxPersons {
		s.Learn(fmt.Sprintf("person%03d", i), Read, noon)
	}
	for i := range 10 {
		s.Learn(fmt.Sprintf("somebody%d", i), Read, noon.Add(time.Hour))
		if name := fmt.Sprintf("person%03d", i); s.Persons[name] != nil {
			t.Errorf("%s is still remembered", name)
		}
	}
}

// TestManyStrangers holds how much any number of people cost together. A new person with write
// access waits no longer than until the next one can be asked about.
func TestManyStrangers(t *testing.T) {
	s, served, lookups := &Strangers{}, 0, 0
	for i := range 1000 {
		a, n := admit(s, fmt.Sprint("throwaway", i), "1", false, None, noon)
		if lookups += n; a == Serve {
			served++
		}
	}
	if served != answersOfAll || lookups != lookupsOfAll {
		t.Errorf("%d of 1000 were served after %d questions, want %d and %d", served, lookups, answersOfAll, lookupsOfAll)
	}
	if len(s.Persons) != maxPersons {
		t.Errorf("%d are remembered", len(s.Persons))
	}
	a, until := s.Admit("ada", "1", false, noon)
	if a != Wait || until.Sub(noon) > everyLookup {
		t.Fatalf("somebody new: %v until %s", a, until)
	}
	if a, _ := admit(s, "ada", "1", false, Write, until); a != Serve {
		t.Errorf("then: %v", a)
	}
}

// TestLooksArePutOff holds how often comments make us look. Those of people with write access do so
// at once, others' as often as a minute has looks, also over many pull requests.
func TestLooksArePutOff(t *testing.T) {
	s, looks := &Strangers{}, map[time.Duration]int{}
	for range 1000 {
		looks[s.LookAt("mallory", noon).Sub(noon)]++
	}
	for minute, want := range []int{looksPerPerson, 1, 1, 1, 1, 1000 - looksPerPerson - 4} {
		if n := looks[time.Duration(minute)*time.Minute]; n != want {
			t.Errorf("%d looks in %d minutes, want %d", n, minute, want)
		}
	}
	s.Learn("ada", Write, noon)
	for range 100 {
		if at := s.LookAt("Ada", noon); !at.Equal(noon) {
			t.Fatalf("somebody who may write is looked at in %s", at.Sub(noon))
		}
	}
	if at := s.LookAt("grace", noon); !at.Equal(noon) {
		t.Errorf("somebody new is looked at in %s", at.Sub(noon))
	}
	atOnce := 0
	for i := range 1000 {
		at := s.LookAt(fmt.Sprint("throwaway", i), noon)
		if at.Equal(noon) {
			atOnce++
		} else if at.Sub(noon) > aheadOfAll*everyLookOfAll {
			t.Fatalf("look %d is put off by %s", i, at.Sub(noon))
		}
	}
	if atOnce >= looksOfAll {
		t.Errorf("%d looks at once for people who are new", atOnce)
	}
}

// TestMeet holds that the forge is asked once about each person who talks.
func TestMeet(t *testing.T) {
	s := &Strangers{}
	if !s.Meet("ada", noon) {
		t.Error("nobody asked")
	}
	s.Learn("ada", Write, noon)
	if s.Meet("ada", noon.Add(strangerFor)) {
		t.Error("it was asked again about who may write")
	}
	s.Learn("mallory", None, noon)
	if s.Meet("mallory", noon.Add(time.Minute)) || !s.Meet("mallory", noon.Add(strangerFor)) {
		t.Error("a stranger is asked about at the wrong time")
	}
}
