package statetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/foresail/foresail/nodepool/state"
)

// Filled returns a record in which every field has a value of its own, including future fields.
func Filled() state.Record {
	var r state.Record
	filler := &filler{}
	filler.fill(reflect.ValueOf(&r).Elem())
	return r
}

type filler struct{ count int }

// fill sets a value and everything in it. It panics for a kind of value that records do not have so
// far.
func (f *filler) fill(v reflect.Value) {
	f.count++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(moment(f.count)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d: <ä> \"\\\"", f.count))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.count))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(field)
		}
	default:
		panic(fmt.Sprintf("a field of type %s: add here how to fill it", v.Type()))
	}
}
