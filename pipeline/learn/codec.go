package learn

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// codec reads numbers in the order in which it writes them.
type codec interface {
	byte(*uint8)
	short(*uint16)
	int(*int64)
	float(*float64)
	single(*float32)
	// length is of a list of at most some elements.
	length(n, most int) int
}

// encoder writes numbers, little-endian.
type encoder []byte

func (e *encoder) byte(v *uint8)     { *e = append(*e, *v) }
func (e *encoder) short(v *uint16)   { *e = binary.LittleEndian.AppendUint16(*e, *v) }
func (e *encoder) int(v *int64)      { *e = binary.LittleEndian.AppendUint64(*e, uint64(*v)) }
func (e *encoder) float(v *float64)  { *e = binary.LittleEndian.AppendUint64(*e, math.Float64bits(*v)) }
func (e *encoder) single(v *float32) { *e = binary.LittleEndian.AppendUint32(*e, math.Float32bits(*v)) }

func (e *encoder) length(n, _ int) int {
	short := uint16(n)
	e.short(&short)
	return n
}

// decoder reads them. After an error numbers are 0.
type decoder struct {
	data []byte
	err  error
}

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

func (d *decoder) byte(v *uint8)    { *v = d.next(1)[0] }
func (d *decoder) short(v *uint16)  { *v = binary.LittleEndian.Uint16(d.next(2)) }
func (d *decoder) int(v *int64)     { *v = int64(binary.LittleEndian.Uint64(d.next(8))) }
func (d *decoder) float(v *float64) { *v = math.Float64frombits(binary.LittleEndian.Uint64(d.next(8))) }
func (d *decoder) single(v *float32) {
	*v = math.Float32frombits(binary.LittleEndian.Uint32(d.next(4)))
}

func (d *decoder) length(_, most int) int {
	var n uint16
	d.short(&n)
	if int(n) > most {
		d.err = cmp.Or(d.err, fmt.Errorf("a list of %d in a checkpoint, of at most %d", n, most))
		return 0
	}
	return int(n)
}
