import { type KyselyPlugin, OperationNodeTransformer, type SchemableIdentifierNode } from 'kysely'

class TablePrefixTransformer extends OperationNodeTransformer {
  readonly prefix: string
  readonly tables: ReadonlySet<string>
  constructor(prefix: string, tables: readonly string[]) {
    super()
    this.prefix = prefix
    this.tables = new Set(tables)
  }
  protected override transformSchemableIdentifier(node: SchemableIdentifierNode): SchemableIdentifierNode {
    if (node.schema || !this.tables.has(node.identifier.name)) return node
    return { ...node, identifier: { kind: 'IdentifierNode', name: this.prefix + node.identifier.name } }
  }
}

/** Prefixes the names of these tables in every query that Kysely builds. */
export function tablePrefixPlugin(prefix: string, tables: readonly string[]): KyselyPlugin {
  const transformer = new TablePrefixTransformer(prefix, tables)
  return {
    transformQuery: ({ node }) => transformer.transformNode(node),
    transformResult: async ({ result }) => result,
  }
}
