package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode returns a record as the JSON object that stores keep.
func Encode(r Record) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode the journal: %w", err)
	}
	return data, nil
}

// Decode reads what [Encode] has written. A journal with a field that it does not know is an error: it is of a newer
// Foresail, and to write it back would lose what is in the field.
func Decode(data []byte) (Record, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var r Record
	if err := decoder.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("decode the journal: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Record{}, errors.New("decode the journal: want one JSON object and nothing after it")
	}
	if r.Version < 1 {
		return Record{}, fmt.Errorf("decode the journal: version: %d: want 1 or more", r.Version)
	}
	return r, nil
}
