// Colours for the languages of the compiler: tokenisers that need no more than one line, so that a jump into the middle
// of a long text costs nothing.

import { StreamLanguage } from "@codemirror/language";
import { python } from "@codemirror/legacy-modes/mode/python";

const STRING = [/^"(?:[^"\\]|\\.)*"?/, "string"];
const NUMBER = [/^-?(?:0[xX][\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b/, "number"];
const OTHER = [/^(?:\s+|[A-Za-z_$.][\w$.]*|.)/, null];

const MLIR = [
  [/^\/\/.*/, "comment"],
  [/^loc\(.*/, "comment"],
  STRING,
  [/^%[\w$.-]+(?:#\d+)?/, "variableName"],
  [/^@(?:[\w$.-]+|"[^"]*")/, "labelName"],
  [/^\^[\w$.-]+/, "labelName"],
  [/^[#!][\w$.]+/, "meta"],
  [/^(?:tensor|memref|vector|index|none|bf16|[su]?i\d+|[tf]f?\d+\w*)\b|^x(?=[su]?i\d|b?f\d)/, "typeName"],
  [/^[a-z_]\w*(?:\.\w+)+/, "keyword"],
  [
    /^(?:module|func|return|attributes|public|private|to|step|iter_args|else|do|dense|true|false)\b/,
    "keyword",
  ],
  [/^[A-Za-z_]\w*(?= = )/, "propertyName"],
  NUMBER,
];

const LLVM = [
  [/^;.*/, "comment"],
  STRING,
  [/^[\w$.-]+:(?=\s|$)/, "labelName"],
  [/^%[\w$.-]+/, "variableName"],
  [/^@(?:[\w$.-]+|"[^"]*")/, "labelName"],
  [/^[#!][\w$.]*/, "meta"],
  [/^(?:void|half|bfloat|float|double|ptr|label|token|metadata|i\d+)\b|^x(?= )/, "typeName"],
  [
    /^(?:define|declare|attributes|target|source_filename|ret|br|switch|call|tail|invoke|phi|select|load|store|alloca|getelementptr|fence|atomicrmw|cmpxchg|extractvalue|insertvalue|extractelement|insertelement|shufflevector|bitcast|inttoptr|ptrtoint|addrspacecast|trunc|zext|sext|fptrunc|fpext|[su]itofp|fpto[su]i|icmp|fcmp|[a-z]?(?:add|sub|mul|div|rem)|shl|lshr|ashr|and|or|xor|fneg|freeze|unreachable|asm|sideeffect)\b/,
    "keyword",
  ],
  NUMBER,
];

const PTX = [
  [/^\/\/.*/, "comment"],
  STRING,
  [/^[%$][\w$.]+:?/, "variableName"],
  [/^@!?(?=%)/, "meta"],
  [/^\.(?:[busf]\d+|pred|b?f16x2|bf16)\b/, "typeName"],
  [
    /^\.(?:version|target|address_size|visible|entry|func|param|reg|loc|file|section|extern|shared|global|maxntid|reqntid|minnctapersm|align|weak)\b/,
    "meta",
  ],
  [/^[a-z][\w]*(?:\.[\w:]+)*/, "keyword"],
  NUMBER,
];

const AMDGCN = [
  [/^[;#].*|^\/\/.*/, "comment"],
  STRING,
  [/^(?:[svat]\d+\b|[svat]\[[\d:]+\]|vcc|exec|scc|m0)\b/, "variableName"],
  [/^\.?[A-Za-z_$][\w$.]*:/, "labelName"],
  [/^\.[\w.]+/, "meta"],
  [/^(?:[svd]s?|global|flat|buffer|scratch|tensor|image)_\w+/, "keyword"],
  NUMBER,
];

const MIR = [
  [/^[;#].*/, "comment"],
  STRING,
  [/^[%$][\w.]+/, "variableName"],
  [/^bb\.[\w.]+:?/, "labelName"],
  [/^![\w.]+/, "meta"],
  [/^[A-Z][A-Z\d_]*[A-Za-z\d_]*/, "keyword"],
  NUMBER,
];

const SASS = [
  [/^\/\*.*?\*\/|^\/\/.*/, "comment"],
  STRING,
  [/^@!?U?P\d+\b/, "meta"],
  [/^(?:U?R|U?P|B|SB)(?:\d+|Z|T)\b(?:\.\w+)*|^SR_[\w.]+/, "variableName"],
  [/^\.L_?\w+:?|^[\w.$]+:$/, "labelName"],
  [/^\.[a-z]\w*/, "meta"],
  [/^[A-Z][A-Z\d]+(?:\.[\w]+)*/, "keyword"],
  NUMBER,
];

const TOKENS = { mlir: MLIR, llvm: LLVM, mir: MIR, ptx: PTX, amdgcn: AMDGCN, gcn: AMDGCN, sass: SASS };

function reader(tokens) {
  const rules = [...tokens, OTHER];
  return StreamLanguage.define({
    token(stream) {
      for (const [pattern, style] of rules) if (stream.match(pattern)) return style;
      stream.next();
      return null;
    },
  });
}

export const LANGUAGES = {
  ...Object.fromEntries(Object.entries(TOKENS).map(([name, tokens]) => [name, reader(tokens)])),
  python: StreamLanguage.define(python),
};
