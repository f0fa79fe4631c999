package plan

// Finding is a problem that people have to look at.
type Finding struct {
	Kind             FindingKind
	Node, InstanceID string
	Message          string // a sentence without a full stop
}

// FindingKind is the kind of a finding.
type FindingKind string

// The kinds of findings.
const (
	Broken        FindingKind = "Broken"        // the Node of a worker has not been Ready for a long time
	RepairHeld    FindingKind = "RepairHeld"    // no unhealthy worker is repaired
	Unlisted      FindingKind = "Unlisted"      // the cloud does not list an instance that has a Node or runs
	Ambiguous     FindingKind = "Ambiguous"     // it is unclear which Node belongs to an instance
	NotOwned      FindingKind = "NotOwned"      // an instance with the pool's tags belongs to another controller
	StillEnding   FindingKind = "StillEnding"   // an instance whose termination was ordered long ago still exists
	DriftUnknown  FindingKind = "DriftUnknown"  // the cloud does not report which instances are outdated
	OffersUnknown FindingKind = "OffersUnknown" // the cloud does not report what can be launched
	PricesUnknown FindingKind = "PricesUnknown" // the cloud does not report prices
)
