package learn

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// codec reads or writes numbers. The same calls, in the same order, do both.
type codec interface {
	uint8(*uint8)
	uint16(*uint16)
	int64(*int64)
	float64(*float64)
	float32(*float32)
	// length reads or writes the length of a list, which has at most maxLength elements.
	length(n, most int) int
}

// encoder writes numbers, little-endian.
type encoder []byte

func (e *encoder) uint8(v *uint8)   { *e = append(*e, *v) }
func (e *encoder) uint16(v *uint16) { *e = binary.LittleEndian.AppendUint16(*e, *v) }
func (e *encoder) int64(v *int64)   { *e = binary.LittleEndian.AppendUint64(*e, uint64(*v)) }
func (e *encoder) float64(v *float64) {
	*e = binary.LittleEndian.AppendUint64(*e, math.Float64bits(*v))
}
func (e *encoder) float32(v *float32) {
	*e = binary.LittleEndian.AppendUint32(*e, math.Float32bits(*v))
}

func (e *encoder) length(n, _ int) int {
	short := uint16(n)
	e.uint16(&short)
	return n
}

// decoder reads numbers. After an error all numbers are 0.
type decoder struct {
	data []byte
	err  error
}

// next returns the next n bytes.
func (d *decoder) next(n int) []byte {
	if d.err == nil && len(d.data) < n {
		d.err = errors.New("a checkpoint ends too early")
	}
	if d.err != nil {
		return make([]byte, 8)
	}
	out := d.data[:n]
	d.data = d.data[n:]
	return out
}

func (d *decoder) uint8(v *uint8)   { *v = d.next(1)[0] }
func (d *decoder) uint16(v *uint16) { *v = binary.LittleEndian.Uint16(d.next(2)) }
func (d *decoder) int64(v *int64)   { *v = int64(binary.LittleEndian.Uint64(d.next(8))) }
func (d *decoder) float64(v *float64) {
	*v = math.Float64frombits(binary.LittleEndian.Uint64(d.next(8)))
}
func (d *decoder) float32(v *float32) {
	*v = math.Float32frombits(binary.LittleEndian.Uint32(d.next(4)))
}

func (d *decoder) length(_, maxLength int) int {
	var n uint16
	d.uint16(&n)
	if int(n) > maxLength {
		d.err = cmp.Or(d.err, fmt.Errorf("a list of %d in a checkpoint, of at most %d", n, maxLength))
		return 0
	}
	return int(n)
}
