include "llvm/TableGen/SearchableTable.td"

class Metal<string name, int number> {
  string Name = name;
  bits<16> Number = number;
}

def Iron : Metal<"iron", 26>;
def Gold : Metal<"gold", 79>;

def Metals : GenericTable {
  let FilterClass = "Metal";
  let Fields = ["Name", "Number"];
  let PrimaryKey = ["Number"];
  let PrimaryKeyName = "metalByNumber";
}
