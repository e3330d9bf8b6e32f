package console

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"strconv"
	"time"
)

// marks stand in a rendered page for what changes while nothing happens: how long ago things
// were, so that a row that hasn't changed is rendered once; and of when the page is. They are
// filled in when it is sent. They hold a secret, so that nothing from outside can be taken for one.
type marks struct{ begin []byte }

// The kinds of marks.
const (
	markAge  = 'a' // with the time in seconds
	markNow  = 'n' // with the layout of the time at which it is sent
	markText = 't' // with the text
)

// markEnd ends a mark.
const markEnd = '\x01'

func newMarks() marks { return marks{[]byte("\x01" + rand.Text())} }

func (m marks) render(kind byte, payload string) template.HTML {
	return template.HTML(string(m.begin) + string(kind) + payload + string(rune(markEnd)))
}

func (m marks) age(t time.Time) template.HTML {
	return m.render(markAge, strconv.FormatInt(t.Unix(), 10))
}

// now is when the page is sent.
func (m marks) now(layout string) func() template.HTML {
	return func() template.HTML { return m.render(markNow, layout) }
}

// untagged is a text of ours that may be another one on the same page.
func (m marks) untagged(text string) template.HTML { return m.render(markText, text) }

// finish makes of a rendered page what is sent, and its entity tag, which is the same as long as
// nothing but the marks' texts differs.
func (m marks) finish(body []byte, now time.Time) (page []byte, tag string) {
	page = make([]byte, 0, len(body))
	sum := sha256.New()
	for {
		before, after, isMarked := bytes.Cut(body, m.begin)
		page = append(page, before...)
		sum.Write(before)
		if !isMarked || len(after) == 0 {
			return page, `W/"` + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:12]) + `"`
		}
		payload, rest, _ := bytes.Cut(after[1:], []byte{markEnd})
		switch after[0] {
		case markAge:
			sum.Write(payload)
			if sec, err := strconv.ParseInt(string(payload), 10, 64); err == nil {
				page = append(page, formatAge(now, time.Unix(sec, 0))...)
			}
		case markNow:
			page = now.UTC().AppendFormat(page, string(payload))
		case markText:
			page = append(page, payload...)
		}
		body = rest
	}
}
