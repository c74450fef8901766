const VOID = new Set(['meta', 'link', 'img', 'source', 'br', 'hr', 'input'])
const RAW = new Set(['style', 'script', 'title', 'textarea'])

/** Lists names and attributes of all elements. Throws if tags do not nest, so that a page test needs no browser. */
export function elementsOf(document: string): { name: string; attributes: Record<string, string> }[] {
  const found = []
  const open: string[] = []
  const tag = /<!--.*?-->|<(\/?)([a-z][a-z0-9_-]*)((?:\s+[^\s=>"']+(?:="[^"]*")?)*)\s*(\/?)>|</gis
  for (let match = tag.exec(document); match; match = tag.exec(document)) {
    const [whole, slash, name = '', attributes = ''] = match
    if (whole.startsWith('<!--') || document.startsWith('<!doctype', match.index)) continue
    if (!name) throw new Error(`stray < at ${document.slice(match.index, match.index + 40)}`)
    if (slash) {
      if (open.pop() !== name) throw new Error(`</${name}> does not close what is open`)
      continue
    }
    found.push({ name, attributes: attributesOf(attributes) })
    if (VOID.has(name)) continue
    open.push(name)
    if (RAW.has(name)) tag.lastIndex = document.indexOf(`</${name}`, tag.lastIndex)
  }
  if (open.length > 0) throw new Error(`never closed: ${open}`)
  return found
}

function attributesOf(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/([^\s=>"']+)(?:="([^"]*)")?/g)].map(([, name = '', value = '']) => [
    name,
    decode(value),
  ])
  return Object.fromEntries(pairs)
}

function decode(text: string): string {
  const chars: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (_, name) => chars[name] ?? '')
}
