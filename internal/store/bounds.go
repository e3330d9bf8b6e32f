package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/wording"
)

// These bound what may be stored. Keys and names are refused beyond their bound, since a shortened
// key is another key; texts for people are cut.
const (
	maxKey  = 512      // bytes of a key or name: four of them must fit an index row of PostgreSQL (2704 bytes)
	maxText = 8 << 10  // bytes of a message, reason or outcome
	maxData = 16 << 20 // bytes of one record's payload
	maxKeys = 10_000   // keys woken by one delivery
)

// checkKey refuses what can't be a key.
func checkKey(what, key string) error {
	if key == "" {
		return fmt.Errorf("%w: %s is empty", ErrInvalid, what)
	}
	return checkName(what, key)
}

// checkName is checkKey for what may be empty.
func checkName(what, name string) error {
	switch {
	case len(name) > maxKey:
		return fmt.Errorf("%w: %s is %d bytes long, at most %d are stored: %.60q…", ErrInvalid, what, len(name), maxKey, name)
	case !isStorable(name):
		return fmt.Errorf("%w: %s is not clean UTF-8: %.60q", ErrInvalid, what, name)
	}
	return nil
}

// checkNames runs checkName over pairs of what and name.
func checkNames(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := checkName(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func checkData(data []byte) error {
	if len(data) > maxData {
		return fmt.Errorf("%w: its data is %d bytes long, at most %d are stored", ErrInvalid, len(data), maxData)
	}
	return nil
}

// checkJSON refuses a payload that is too big or not text.
func checkJSON(data json.RawMessage) error {
	if err := checkData(data); err != nil || isStorable(string(data)) {
		return err
	}
	return fmt.Errorf("%w: its data is not clean UTF-8", ErrInvalid)
}

// isStorable says whether both databases can keep the text: PostgreSQL takes
// neither invalid UTF-8 nor NUL.
func isStorable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// limitText makes a text for people storable and cuts it to maxText bytes.
func limitText(s string) string { return truncateText(s, maxText) }

// truncateText makes a text storable and cuts it between characters to at most n bytes.
func truncateText(s string, n int) string {
	if !isStorable(s) {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	}
	return wording.Clip(s, n)
}
