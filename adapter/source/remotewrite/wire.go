package remotewrite

import (
	"errors"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message on the wire.
type field struct {
	number protowire.Number
	value  []byte // of a length-delimited field, else nil
	whole  []byte // with its tag
}

var errWireType = errors.New("a field has the wrong wire type")

// fields goes through the fields of a message without decoding them. It ends with the first error.
func fields(message []byte) iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		for len(message) > 0 {
			number, kind, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				yield(field{}, protowire.ParseError(tag))
				return
			}
			size := protowire.ConsumeFieldValue(number, kind, message[tag:])
			if size < 0 {
				yield(field{}, protowire.ParseError(size))
				return
			}
			f := field{number: number, whole: message[:tag+size]}
			if kind == protowire.BytesType {
				f.value, _ = protowire.ConsumeBytes(message[tag:])
			}
			if !yield(f, nil) {
				return
			}
			message = message[tag+size:]
		}
	}
}
