//! How rows look, for the description: their types are the library's, which knows nothing of HTTP.

use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    Text,
    Uuid,
    Time,
    Flag,
    Number,
    Texts,
    Anything,
}

/// A field; whether it may be null.
pub(super) type Field = (&'static str, Of, bool);

impl Of {
    fn schema(self, nullable: bool) -> RefOr<Schema> {
        let (kind, format) = match self {
            Self::Text => (Type::String, None),
            Self::Uuid => (Type::String, Some(KnownFormat::Uuid)),
            Self::Time => (Type::String, Some(KnownFormat::DateTime)),
            Self::Flag => (Type::Boolean, None),
            Self::Number => (Type::Integer, None),
            Self::Texts => (Type::Array, None),
            Self::Anything => {
                return Schema::Object(ObjectBuilder::new().schema_type(SchemaType::AnyValue).build()).into();
            }
        };
        let kind = match nullable {
            true => SchemaType::from_iter([kind, Type::Null]),
            false => kind.into(),
        };
        if matches!(self, Self::Texts) {
            let text = ObjectBuilder::new().schema_type(Type::String);
            return Schema::from(ArrayBuilder::new().schema_type(kind).items(text)).into();
        }
        let object = ObjectBuilder::new()
            .schema_type(kind)
            .format(format.map(SchemaFormat::KnownFormat));
        Schema::from(object).into()
    }
}

/// A list of objects that have at least these fields; `open`: more may come.
pub(super) fn list(fields: &[Field], open: bool) -> Schema {
    ArrayBuilder::new().items(row(fields, open)).into()
}

fn row(fields: &[Field], open: bool) -> RefOr<Schema> {
    let object = fields
        .iter()
        .fold(ObjectBuilder::new(), |object, (name, of, nullable)| {
            object.property(*name, of.schema(*nullable)).required(*name)
        });
    let object = object.additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(open)));
    Schema::from(object).into()
}
