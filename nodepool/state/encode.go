package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxText bounds one text, in bytes.
	maxText = 256
	// maxTexts bounds all different texts together, in bytes. Further ones are left out.
	maxTexts = 64 << 10
)

// stored is a record in the form of stores. Many parts of a record have the same text, so each
// different text is stored once, shortened, and the parts have its index.
type stored struct {
	Record
	Texts []string `json:"texts,omitempty"`
}

// Encode returns a record as the JSON object that stores keep. Its texts take at most 64 KiB.
func Encode(r Record) ([]byte, error) {
	s := stored{Record: r.Clone()}
	known, size := map[string]string{}, 0
	s.eachText(func(text *string) {
		short := Shorten(*text, maxText)
		at, ok := known[short]
		if !ok && short != "" && size+len(short) <= maxTexts {
			at, size = strconv.Itoa(len(s.Texts)), size+len(short)
			known[short], s.Texts = at, append(s.Texts, short)
		}
		*text = at
	})
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the journal: %w", err)
	}
	return data, nil
}

// Decode reads the output of [Encode]. An unknown field is an error: the journal comes from a newer
// Foresail, and writing it back would lose the field.
func Decode(data []byte) (Record, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var s stored
	if err := decoder.Decode(&s); err != nil {
		return Record{}, fmt.Errorf("decode the journal: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Record{}, errors.New("decode the journal: must be one JSON object and nothing after it")
	}
	if s.Version < 1 {
		return Record{}, fmt.Errorf("decode the journal: version: %d: must be at least 1", s.Version)
	}
	if err := s.resolve(); err != nil {
		return Record{}, fmt.Errorf("decode the journal: %w", err)
	}
	return s.Record, nil
}

// resolve replaces the indexes of texts by the texts.
func (s *stored) resolve() (err error) {
	s.eachText(func(text *string) {
		if *text == "" {
			return
		}
		at, parseErr := strconv.Atoi(*text)
		if parseErr != nil || at < 0 || at >= len(s.Texts) {
			err = fmt.Errorf("text %q: must be an index below %d", *text, len(s.Texts))
			return
		}
		*text = s.Texts[at]
	})
	return err
}

// Shorten returns a text, or its beginning with an ellipsis if it has more than limit bytes.
func Shorten(text string, limit int) string {
	const ellipsis = "…"
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
