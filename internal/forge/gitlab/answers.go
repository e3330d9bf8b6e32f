package gitlab

import (
	"bytes"
	"encoding/json"
	"errors"
)

// checkedJSON reads an answer into what it is to fill, and refuses one that leaves that empty: what
// GitLab doesn't say would be taken for what isn't so.
type checkedJSON struct{ into any }

func (c *checkedJSON) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return errors.New("it is null")
	}
	if err := json.Unmarshal(data, c.into); err != nil {
		return err
	}
	return complete(c.into)
}

// complete says what a part of an answer lacks of what it can't be understood without.
func complete(part any) error {
	p, ok := part.(interface{ missing() string })
	if !ok {
		return nil
	}
	if what := p.missing(); what != "" {
		return errors.New("it lacks " + what)
	}
	return nil
}
