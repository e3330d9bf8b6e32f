package command

import (
	"slices"
	"strings"
	"time"
)

// On a public repository everybody may comment, and reading, checking and answering a
// comment takes calls to the forge, of which merges and reverts need the same. So what
// those may cause who can't write is bounded, each and all together.
const (
	// How often a comment makes us look at its pull request: three at once, then one a
	// minute; of all together thirty at once, then six a minute.
	looksPerPerson, everyLookOfPerson = 3, time.Minute
	looksOfAll, everyLookOfAll        = 30, 10 * time.Second
	// How many looks are put off: past them, comments share the last one's time.
	aheadOfPerson, aheadOfAll = 5, 60
	// How often it is asked what somebody may do.
	lookupsOfAll, everyLookup = 60, 10 * time.Second
	// How many questions are answered.
	questionsPerPerson, everyQuestion = 5, 2 * time.Minute
	// How many answers there are altogether, refusals included.
	answersOfAll, everyAnswer = 20, 30 * time.Second

	// refusedFor is how long Liftlock ignores further commands that need the permission to write,
	// from an account to which it was refused.
	refusedFor = 10 * time.Minute
	// strangerFor is how long it is believed that somebody may not write, and writerFor
	// that somebody may. Every command of those who may is authorised anew.
	strangerFor = 10 * time.Minute
	writerFor   = 24 * time.Hour
	// maxPersons bounds who is remembered.
	maxPersons = 200
)

// Strangers is what those have caused lately who may not write to a repository, or of
// whom that isn't known yet. It is a value that is kept as JSON, so that neither a
// restart nor another server begins anew; the zero value is nothing. Its methods change it.
type Strangers struct {
	Looks   bucket             `json:"looks"`
	Lookups bucket             `json:"lookups"`
	Answers bucket             `json:"answers"`
	Persons map[string]*person `json:"persons,omitempty"` // by login, in lower case
}

// person is somebody who commented.
type person struct {
	Permission Permission `json:"permission,omitempty"`
	KnownAt    time.Time  `json:"knownAt,omitzero"` // zero: it was not asked for
	Looks      bucket     `json:"looks"`
	Questions  bucket     `json:"questions"`
	RefusedAt  time.Time  `json:"refusedAt,omitzero"`
	Served     string     `json:"served,omitempty"` // the last comment that was let through
}

// Admission is what happens to a comment.
type Admission int

// The admissions.
const (
	Ignore Admission = iota // its author had enough
	Serve                   // it is served, as commands by accounts with write access always are
	LookUp                  // it must be known first what its author may do: Learn, then Admit again
	Wait                    // the same, but later
)

// LookAt is when a comment of somebody makes us look at its pull request: now, or later,
// where so many did lately that it is put off.
func (s *Strangers) LookAt(login string, now time.Time) time.Time {
	p := s.find(login, now)
	if p.mayWrite(now) {
		return now
	}
	at, more := p.Looks.takeAhead(now, looksPerPerson, aheadOfPerson, everyLookOfPerson)
	if !more {
		return at // it comes with another one, and takes nothing from the others
	}
	ofAll, _ := s.Looks.takeAhead(now, looksOfAll, aheadOfAll, everyLookOfAll)
	return latest(at, ofAll)
}

// takeAhead takes a token, if need be a future one, and says when that one comes. It is false when
// so many were taken that it only says when the last of them comes.
func (b *bucket) takeAhead(now time.Time, most, ahead int, every time.Duration) (time.Time, bool) {
	*b = b.refillAt(now, most, every)
	more := b.Left > -ahead
	if more {
		b.Left--
	}
	return latest(now, b.At.Add(time.Duration(-b.Left)*every)), more
}

// Admit says what happens to a comment with commands: its name, and whether all of them are
// questions. The same comment is let through again as long as no other one was. until is when a
// comment that has to wait may be served, and zero for all others.
func (s *Strangers) Admit(login, comment string, questions bool, now time.Time) (a Admission, until time.Time) {
	p := s.find(login, now)
	switch {
	case p.mayWrite(now) || p.Served == comment:
		return Serve, time.Time{}
	case p.Permission < Write && now.Sub(p.KnownAt) >= strangerFor:
		return s.lookUp(now)
	case p.Permission >= Write:
		return LookUp, time.Time{} // those who could a day ago take nothing from the others
	case now.Sub(p.RefusedAt) < refusedFor && (!questions || p.Permission < Read):
		return Ignore, time.Time{}
	}
	s.Answers = s.Answers.refillAt(now, answersOfAll, everyAnswer)
	p.Questions = p.Questions.refillAt(now, questionsPerPerson, everyQuestion)
	answered := questions && p.Permission >= Read
	if s.Answers.Left <= 0 || answered && p.Questions.Left <= 0 {
		return Ignore, time.Time{}
	}
	s.Answers.Left--
	if answered {
		p.Questions.Left--
	} else {
		p.RefusedAt = now
	}
	p.Served = comment
	return Serve, time.Time{}
}

func (s *Strangers) lookUp(now time.Time) (Admission, time.Time) {
	s.Lookups = s.Lookups.refillAt(now, lookupsOfAll, everyLookup)
	if s.Lookups.Left <= 0 {
		return Wait, s.Lookups.At.Add(everyLookup)
	}
	s.Lookups.Left--
	return LookUp, time.Time{}
}

// Meet says whether it is worth asking what a person may do who only talks. If they may write, a
// later command of theirs is then served at once.
func (s *Strangers) Meet(login string, now time.Time) bool {
	p := s.find(login, now)
	if p.mayWrite(now) || now.Sub(p.KnownAt) < strangerFor {
		return false
	}
	a, _ := s.lookUp(now)
	return a == LookUp
}

// Learn remembers what somebody may do by the forge's word.
func (s *Strangers) Learn(login string, may Permission, now time.Time) {
	p := s.find(login, now)
	p.Permission, p.KnownAt = may, now
}

func (p *person) mayWrite(now time.Time) bool {
	return p.Permission >= Write && now.Sub(p.KnownAt) < writerFor
}

// find is somebody, new or known. Where there is no room those go first of whom it was
// learnt longest ago what they may do: what all may cause together bounds who comes anew.
func (s *Strangers) find(login string, now time.Time) *person {
	login = strings.ToLower(login)
	if p := s.Persons[login]; p != nil {
		return p
	}
	if s.Persons == nil {
		s.Persons = map[string]*person{}
	}
	if len(s.Persons) >= maxPersons {
		logins := make([]string, 0, len(s.Persons))
		for l := range s.Persons {
			logins = append(logins, l)
		}
		delete(s.Persons, slices.MinFunc(logins, func(a, b string) int {
			if c := s.Persons[a].lastSeen().Compare(s.Persons[b].lastSeen()); c != 0 {
				return c
			}
			return strings.Compare(a, b)
		}))
	}
	p := &person{Looks: bucket{Left: looksPerPerson, At: now}, Questions: bucket{Left: questionsPerPerson, At: now}}
	s.Persons[login] = p
	return p
}

func (p *person) lastSeen() time.Time { return latest(p.KnownAt, p.Looks.At) }

func latest(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare)
}
