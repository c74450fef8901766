import { OperationNodeTransformer, type SchemableIdentifierNode } from 'kysely'

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

/** Puts a literal prefix before the names of these tables, in what Kysely builds. */
export class TablePrefixPlugin {
  readonly transformer: TablePrefixTransformer
  constructor(prefix: string, tables: readonly string[]) {
    this.transformer = new TablePrefixTransformer(prefix, tables)
  }
  transformQuery(args: { node: Parameters<TablePrefixTransformer['transformNode']>[0] & object }) {
    // biome-ignore lint/suspicious/noExplicitAny: Kysely's plugin type names the union of all root nodes
    return this.transformer.transformNode(args.node) as any
  }
  async transformResult<Result>(args: { result: Result }) {
    return args.result
  }
}
