package decode

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message on the wire.
type field struct {
	number protowire.Number
	value  []byte // of a length-delimited field, else nil
	varint uint64 // of a number of variable length
	whole  []byte // with its tag
}

// fields iterates over the fields of a message without decoding them. It ends with the first error.
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
			switch kind {
			case protowire.BytesType:
				f.value, _ = protowire.ConsumeBytes(message[tag:])
			case protowire.VarintType:
				f.varint, _ = protowire.ConsumeVarint(message[tag:])
			}
			if !yield(f, nil) {
				return
			}
			message = message[tag+size:]
		}
	}
}

// messages iterates over the messages in one field of a message. Its errors are *Error.
func messages(message []byte, number protowire.Number) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for f, err := range fields(message) {
			if err == nil && f.number != number {
				continue
			}
			if err == nil && f.value == nil {
				err = errWireType
			}
			if err != nil {
				yield(nil, Malformed(err))
				return
			}
			if !yield(f.value, nil) {
				return
			}
		}
	}
}
