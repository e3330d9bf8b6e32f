package fieldedit

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/fieldpath"
)

// maxSpelled bounds the values that are searched for another spelling of a path.
const maxSpelled = 1000

// speller looks for a value whose keys read as a path's do, with the dots elsewhere: image.tag is
// two keys, and some files have it as one.
type speller struct {
	steps []spelledStep
	given []fieldpath.Segment
	left  int
}

// spelledStep is a word of a key, or what is no key.
type spelledStep struct {
	word    string
	segment fieldpath.Segment // of a word: that which it is from
}

func (s spelledStep) isWord() bool {
	return s.segment.Kind == fieldpath.Key || s.segment.Kind == fieldpath.Token
}

// otherSpelling is how the file spells a path in which only the dots are otherwise, as it is
// written in a pipeline's carry and given to Set. Empty where it has none.
func (d *document) otherSpelling(given []fieldpath.Segment) string {
	s := &speller{given: given, left: maxSpelled}
	for _, segment := range given {
		words := []string{segment.Key}
		if (spelledStep{segment: segment}).isWord() {
			words = strings.Split(segment.Key, ".")
		}
		for _, word := range words {
			s.steps = append(s.steps, spelledStep{word, segment})
		}
	}
	for _, root := range d.roots {
		if found := s.walk(root, 0, nil); found != nil {
			return fieldpath.New(found...).String()
		}
	}
	return ""
}

// walk finds the steps from one on below a node; before are the segments that lead there.
func (s *speller) walk(n *yaml.Node, from int, before []fieldpath.Segment) []fieldpath.Segment {
	if s.left--; s.left < 0 {
		return nil
	}
	n = resolveAlias(n)
	if from == len(s.steps) {
		if n.Kind != yaml.ScalarNode || slices.EqualFunc(before, s.given, fieldpath.Segment.Equal) {
			return nil
		}
		return before
	}
	step := s.steps[from]
	deeper := func(child *yaml.Node, segment fieldpath.Segment, to int) []fieldpath.Segment {
		if child == nil {
			return nil
		}
		return s.walk(child, to, append(before[:len(before):len(before)], segment))
	}
	switch isList := n.Kind == yaml.SequenceNode; {
	case step.segment.Kind == fieldpath.Any, step.segment.Kind == fieldpath.Each:
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 {
				continue
			}
			if found := deeper(child, step.segment, from+1); found != nil {
				return found
			}
		}
	case isList || !step.isWord():
		if child, err := findChild(n, step.segment); err == nil {
			return deeper(child, step.segment, from+1)
		}
	case n.Kind == yaml.MappingNode:
		key := ""
		for to := from; to < len(s.steps) && s.steps[to].isWord(); to++ {
			key += s.steps[to].word
			child, err := lookupKey(n, key)
			if err != nil {
				return nil
			}
			if found := deeper(child, fieldpath.Segment{Kind: step.segment.Kind, Key: key}, to+1); found != nil {
				return found
			}
			key += "."
		}
	}
	return nil
}

// OtherSpelling is a value of a file that a path doesn't lead to and that reads like one: the same
// keys with the dots elsewhere.
type OtherSpelling struct {
	Path    string
	Spelled string // as it is written to mean that value
}

// FindOtherSpellings lists what a file has beside the values that ops set, and that readers may mean by
// the same name; file is as for Set. A path that isn't there itself is none of them: FindMissing has it.
func FindOtherSpellings(data []byte, file string, ops []Op) ([]OtherSpelling, error) {
	_, as, err := fileKind(file)
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(data, as)
	if err != nil {
		return nil, withLocation(err, file, "")
	}
	var out []OtherSpelling
	for _, op := range ops {
		if op.Image != "" {
			continue
		}
		if at, err := d.findPath(op.Path); err != nil || at.node == nil {
			continue // Set or FindMissing says it
		}
		if spelled := d.otherSpelling(op.Path.Segments()); spelled != "" {
			out = append(out, OtherSpelling{op.Path.String(), spelled})
		}
	}
	return out, nil
}
